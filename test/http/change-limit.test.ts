import { expect, it } from 'vitest'
import { startTestGateway } from '../support/gateway.ts'
import { addPerson, firstAdministrator } from '../support/people.ts'

it('refuses the changes of a member who makes too many in a minute, and nothing else', async () => {
  await using gateway = await startTestGateway({ limits: { changesPerMinute: 3 } })
  const ada = await firstAdministrator(gateway)
  const mia = await addPerson(gateway, ada, 'mia', 'member')
  const gus = await addPerson(gateway, ada, 'gus', 'member')
  const change = (person: typeof mia, name: string) => person.request('POST', '/api/agents', { name })
  const statuses: number[] = []
  for (const name of ['one', 'two', 'three', 'four']) statuses.push((await change(mia, name)).status)
  expect(statuses).toEqual([201, 201, 201, 429])
  const refused = await change(mia, 'five')
  expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0)
  expect(refused.text).toContain('limit-exceeded')
  expect((await mia.request('GET', '/api/agents')).text).not.toContain('five')
  expect((await mia.request('GET', '/api/agents')).status).toBe(200)
  expect((await change(gus, 'six')).status).toBe(201)
})

it('lets administrators make ten times as many changes, and no more', async () => {
  await using gateway = await startTestGateway({ limits: { changesPerMinute: 1 } })
  const ada = await firstAdministrator(gateway)
  const statuses: number[] = []
  for (let count = 0; count < 11; count++) {
    statuses.push((await ada.request('POST', '/api/agents', { name: `agent-${count}` })).status)
  }
  expect(statuses).toEqual([...Array.from({ length: 10 }, () => 201), 429])
})

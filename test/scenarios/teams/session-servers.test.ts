import { expect, it } from 'vitest'
import { startTestGateway } from '../../support/gateway.ts'
import { addPerson, firstAdministrator } from '../../support/people.ts'
import { startListener } from './support.ts'

it('lets a member’s session have what members may have, gone when it ends; an administrator’s is trusted further', async () => {
  await using listener = await startListener()
  await using gateway = await startTestGateway({
    servers: { off: { transport: 'http', url: listener.url, enabled: false } },
    egress: { allow: [] },
  })
  const ada = await firstAdministrator(gateway)
  const anna = await addPerson(gateway, ada, 'anna', 'member')
  const own = { transport: 'http', url: listener.url }
  const attempts: object[] = [
    { shell: { transport: 'stdio', command: 'sh' } },
    { hints: { ...own, trust: 'annotations' } },
    { off: { enabled: true } },
    { off: { ...own, url: 'https://elsewhere.example' } },
  ]
  for (const servers of attempts) {
    expect([servers, (await anna.request('POST', '/api/sessions', { servers })).status]).toEqual([servers, 403])
  }
  const idsOf = () => gateway.gateway.servers.list().map(({ id }) => id)

  expect((await anna.request('POST', '/api/sessions', { name: 'hers', servers: { own } })).status).toBe(201)
  await expect.poll(idsOf).toContain('own@session:hers')
  const guarded = () => gateway.gateway.servers.list().find(({ id }) => id === 'own@session:hers')?.error?.code
  await expect.poll(guarded).toBe('egress-denied')
  const added = await anna.request('POST', '/api/servers', { name: 'more', scope: 'session:hers', definition: own })
  expect(added.status).toBe(201)
  expect(idsOf()).toContain('more@session:hers')
  expect((await anna.request('DELETE', '/api/sessions/hers')).status).toBe(200)
  await expect.poll(idsOf).toEqual(['off'])
  expect(listener.requests()).toBe(0)

  expect((await ada.request('POST', '/api/sessions', { name: 'his', servers: { own } })).status).toBe(201)
  const state = () => gateway.gateway.servers.list().find(({ id }) => id === 'own@session:his')?.state
  await expect.poll(state, { timeout: 10_000 }).toBe('connected')
})

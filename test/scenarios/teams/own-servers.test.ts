import { afterAll, beforeAll, expect, it } from 'vitest'
import { poll, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { type Listener, people, startListener } from './support.ts'

const password = 'correct horse battery'
const tool = (name: string, annotations: object) => ({ name, inputSchema: { type: 'object' }, annotations })
const config = { egress: { allow: ['127.0.0.1'] }, projects: { shop: {} }, agents: { till: { project: 'shop' } } }
let listener: Listener
let gateway: TestGateway

beforeAll(async () => {
  listener = await startListener(() => [
    tool('peek', { readOnlyHint: true }),
    tool('wipe', { readOnlyHint: true, destructiveHint: true }),
    tool('change', {}),
  ])
  gateway = await startTestGateway(config)
  const { users, agents, servers } = gateway.gateway
  for (const name of ['anna', 'ben']) await users.add(people.root, { name, role: 'member', password })
  for (const name of ['hers', 'till', 'given']) await agents.add(people.root, { name, owner: 'anna' })
  const definition = { transport: 'http' as const, url: listener.url }
  await servers.add(people.anna, { name: 'notes', scope: 'user:anna', definition })
})
afterAll(async () => {
  await gateway.close()
  await listener[Symbol.asyncDispose]()
})

/** 200: the call ran without approval. 202: it waits for a person. */
async function call(agent: string, name: string): Promise<number> {
  const body = JSON.stringify({ arguments: { at: agent } })
  const headers = { 'content-type': 'application/json' }
  return (await gateway.fetch(agent, `/api/tools/notes_${name}/call`, { method: 'POST', headers, body })).status
}

it('a reading tool of a member’s own server runs without approval for the member’s agents', async () => {
  expect(await call('hers', 'peek')).toBe(200)
  const { tools } = gateway.gateway.servers.get(people.anna, 'notes', 'user:anna')
  expect(tools.map(({ original, risk }) => [original, risk])).toEqual([
    ['peek', 'read'],
    ['wipe', 'danger'],
    ['change', 'write'],
  ])
})

it('a dangerous tool and a tool without annotations still ask', async () => {
  expect([await call('hers', 'wipe'), await call('hers', 'change')]).toEqual([202, 202])
})

it('an agent in a project asks for each call, also if the project has no settings', async () => {
  expect(await call('till', 'peek')).toBe(202)
})

it('an agent that gets another owner does not have the server any more', async () => {
  expect(await call('given', 'peek')).toBe(200)
  await gateway.gateway.agents.change(people.root, 'given', { owner: 'ben' })
  expect(await call('given', 'peek')).toBe(404)
})

it('`members.trustOwn: false` makes every call ask, from the next call on', async () => {
  await gateway.writeConfig({
    ...config,
    users: gateway.gateway.config.current().users,
    members: { trustOwn: false },
  })
  await poll(() => !gateway.gateway.config.current().members.trustOwn || undefined)
  expect(await call('hers', 'peek')).toBe(202)
})

import type { ClientRequest } from 'node:http'
import { describe, expect, it } from 'vitest'
import { databases, ids, open as openStore, placeOn } from '../../storage/support.ts'
import { poll, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { addPerson, firstAdministrator, sendJson, type TestPerson } from '../../support/people.ts'
import { open } from '../mcp/raw.ts'
import { startListener } from './support.ts'

const ask = { name: 'change', inputSchema: { type: 'object' } }
const read = { name: 'peek', inputSchema: { type: 'object' }, annotations: { readOnlyHint: true } }

async function demand(sent: ReturnType<TestPerson['request']>) {
  const reply = await sent
  if (reply.status >= 300) throw new Error(reply.text)
  return reply.message
}

function namesOf(message: Record<string, unknown>): string[] {
  const { items } = message as { items: { noun: string; name: string; effect?: string }[] }
  return items.map(({ noun, name, effect }) => [noun, name, effect].filter(Boolean).join(' | '))
}

function as(gateway: TestGateway, token: unknown) {
  const headers = { authorization: `Bearer ${token}` }
  return (method: string, path: string, body?: unknown) => sendJson(gateway, method, path, body, headers)
}

/** A request of which the gateway has the head and the first byte of the body; `finish` sends the rest. */
async function begin(gateway: TestGateway, wanted: { method: string; path: string; headers: object; body: unknown }) {
  const text = JSON.stringify(wanted.body)
  const headers = { 'content-type': 'application/json', 'content-length': `${text.length}`, ...wanted.headers }
  const request: ClientRequest = open(gateway.url, { method: wanted.method, path: wanted.path, headers })
  const answered = new Promise<number>((resolve, reject) => {
    request.on('error', reject)
    request.on('response', (response) => {
      response.resume()
      response.on('end', () => resolve(response.statusCode ?? 0))
    })
  })
  await new Promise<void>((resolve) => request.write(text.slice(0, 1), () => resolve()))
  return {
    finish: () => {
      request.end(text.slice(1))
      return answered
    },
  }
}

describe('a request that was sent before its user was removed, and whose body comes after', () => {
  it('does nothing to the user who has the name by then', async () => {
    await using listener = await startListener(() => [{ ...read, name: 'peek' }])
    await using gateway = await startTestGateway({
      egress: { allow: ['127.0.0.1'] },
      rules: [{ tools: '*', action: 'allow' }],
    })
    const ada = await firstAdministrator(gateway)
    const kim = await addPerson(gateway, ada, 'kim', 'member')
    const { token } = await demand(kim.request('POST', '/api/tokens', { agent: 'kims-bot' }))
    const person = { cookie: kim.cookie, origin: gateway.url }
    const agent = { authorization: `Bearer ${token}`, accept: 'application/json, text/event-stream' }
    const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'own_peek', arguments: {} } }
    const server = { name: 'planted', scope: 'user:kim', transport: 'http', url: listener.url }
    const pending = await Promise.all([
      begin(gateway, { method: 'POST', path: '/api/tokens', headers: person, body: { agent: 'kims-bot' } }),
      begin(gateway, { method: 'POST', path: '/api/servers', headers: person, body: server }),
      begin(gateway, {
        method: 'PUT',
        path: '/api/secrets/KEY?scope=user:kim',
        headers: person,
        body: { value: 'of-the-first-kim' },
      }),
      begin(gateway, { method: 'POST', path: '/api/tools/own_peek/call', headers: agent, body: { arguments: {} } }),
      begin(gateway, { method: 'POST', path: '/mcp', headers: agent, body: call }),
    ])
    // A head that was not read yet would be refused at the door, which is not what this is about.
    await poll(async () => ((await kim.request('GET', '/api/me')).status === 200 ? true : undefined))
    await demand(ada.request('DELETE', '/api/users/kim'))
    const next = await addPerson(gateway, ada, 'kim', 'member')
    await demand(next.request('POST', '/api/tokens', { agent: 'kims-bot' }))
    await demand(
      next.request('POST', '/api/servers', { name: 'own', scope: 'user:kim', transport: 'http', url: listener.url }),
    )
    const statuses = await Promise.all(pending.map(({ finish }) => finish()))
    expect(statuses).toEqual([401, 401, 401, 401, 401])
    expect(listener.calls()).toBe(0)
    const { items: tokens } = (await next.request('GET', '/api/tokens')).message
    expect(tokens).toHaveLength(1)
    expect((await next.request('GET', '/api/secrets')).message.items).toEqual([])
    expect((await next.request('GET', '/api/servers')).message.items).toMatchObject([{ name: 'own' }])
  })
})

describe.each(databases)('the removal of a user (%s)', (kind) => {
  it('takes along what the sessions of the user have: secrets, also of ended sessions, and approvals', async () => {
    await using listener = await startListener(() => [ask])
    const { databaseUrl } = await placeOn(kind)
    await using gateway = await startTestGateway(
      { servers: { shop: { transport: 'http', url: listener.url } } },
      { databaseUrl },
    )
    const ada = await firstAdministrator(gateway)
    const kim = await addPerson(gateway, ada, 'kim', 'member')
    const { token } = await demand(kim.request('POST', '/api/sessions', { name: 'open-one' }))
    await demand(kim.request('POST', '/api/sessions', { name: 'ended-one' }))
    for (const name of ['open-one', 'ended-one'])
      await demand(kim.request('PUT', `/api/secrets/KEY?scope=session:${name}`, { value: 'of-a-session' }))
    await demand(kim.request('DELETE', '/api/sessions/ended-one'))
    const asked = await as(gateway, token)('POST', '/api/tools/shop_change/call', { arguments: {} })
    const { approval } = asked.message as { approval: { id: string } }
    const removed = await demand(ada.request('DELETE', '/api/users/kim'))
    expect(namesOf(removed)).toEqual([
      'session | open-one | ends',
      'secret | KEY of session:ended-one',
      'secret | KEY of session:open-one',
      'approval | Change | is withdrawn',
    ])
    expect((await ada.request('GET', '/api/secrets')).message.items).toEqual([])
    expect((await ada.request('GET', `/api/approvals/${approval.id}`)).message).toMatchObject({ state: 'withdrawn' })
  })

  it('withdraws approvals that the user gave and that no call has used, also the first of two', async () => {
    await using listener = await startListener(() => [ask, { ...ask, name: 'both' }])
    const { databaseUrl } = await placeOn(kind)
    await using gateway = await startTestGateway(
      {
        servers: { shop: { transport: 'http', url: listener.url } },
        rules: [{ tools: 'shop_both', action: 'ask', approvers: 'two' }],
      },
      { databaseUrl },
    )
    const ada = await firstAdministrator(gateway)
    const bob = await addPerson(gateway, ada, 'bob', 'administrator')
    const { token } = await demand(ada.request('POST', '/api/tokens', { agent: 'bot' }))
    const call = async (tool: string) =>
      (await as(gateway, token)('POST', `/api/tools/shop_${tool}/call`, { arguments: {} })).message as {
        approval: { id: string }
      }
    const asked = [await call('change'), await call('both')]
    for (const { approval } of asked)
      await demand(bob.request('POST', `/api/approvals/${approval.id}/answer`, { verdict: 'approve' }))
    const removed = await demand(ada.request('DELETE', '/api/users/bob'))
    expect(namesOf(removed).sort()).toEqual(['approval | Both | is withdrawn', 'approval | Change | is withdrawn'])
    for (const { approval } of asked) {
      const { state, withdrawnBecause } = (await ada.request('GET', `/api/approvals/${approval.id}`)).message
      expect([state, withdrawnBecause]).toEqual(['withdrawn', 'The user bob was removed'])
    }
    // The next call is a new one: it asks again, and a user of the old name is not taken for the first approver.
    await poll(async () => ((await call('both')).approval ? true : undefined))
    expect(listener.calls()).toBe(0)
    const again = await call('both')
    const other = await addPerson(gateway, ada, 'bob', 'administrator')
    for (const person of [ada, other])
      await demand(person.request('POST', `/api/approvals/${again.approval.id}/answer`, { verdict: 'approve' }))
    await call('both')
    expect(listener.calls()).toBe(1)
  })

  it('does not leave the name of an agent blocked that was added in the same moment by another gateway', async () => {
    const storage = await openStore(await placeOn(kind))
    const change = { principal: 'user:ada', subject: 'user:kim', body: {} }
    const made = { createdAt: 1, createdBy: 'user:ada' }
    const kim = { id: 'user_1', name: 'kim', role: 'member' as const, groups: [], password: '', revision: 1, ...made }
    await storage.users.add(kim, change)
    expect(await storage.removal.commit(storage.users.retire('user_1'), change)).toBe('done')
    const agent = (id: string, ownerId: string) => ({ agent: { id, name: 'bot', ownerId, ...made }, change })
    expect(await storage.agents.add(agent('agent_1', 'user_1'))).toBe(true)
    await storage.users.add({ ...kim, id: 'user_2' }, change)
    const token = { kind: 'agent' as const, name: 'bot', prefix: 'sp', createdAt: 1 }
    const first = { ...token, id: ids.next('token'), hash: '01', holderId: 'agent_2' }
    expect(await storage.tokens.add(first, change, agent('agent_2', 'user_2'))).toBe(true)
    const second = { ...token, id: ids.next('token'), hash: '02', holderId: 'agent_3' }
    expect(await storage.tokens.add(second, change, agent('agent_3', 'user_2'))).toBe(false)
  })

  it('is decided by the database: two administrators who remove each other at once are not both removed', async () => {
    const { databaseUrl } = await placeOn(kind)
    await using gateway = await startTestGateway({}, { databaseUrl })
    const second = databaseUrl === undefined ? undefined : await startTestGateway({}, { databaseUrl })
    await using other = second ?? gateway
    const ada = await firstAdministrator(gateway)
    await addPerson(gateway, ada, 'bob', 'administrator')
    const bob = await poll(async () =>
      sendJson(other, 'POST', '/api/sign-in', { name: 'bob', password: 'correct horse battery' }).then((reply) =>
        reply.status === 200 ? reply.headers['set-cookie']?.[0]?.split(';')[0] : undefined,
      ),
    )
    const headers = { cookie: bob, origin: other.url }
    const replies = await Promise.all([
      ada.request('DELETE', '/api/users/bob'),
      sendJson(other, 'DELETE', '/api/users/ada', undefined, headers),
    ])
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(1)
    const left = gateway.gateway.users.list().filter(({ disabledAt }) => disabledAt === undefined)
    expect(left).toMatchObject([{ role: 'administrator' }])
  })
})

describe('after a removal', () => {
  it('a project of an administrator who removed their own account belongs to another administrator', async () => {
    await using gateway = await startTestGateway({ projects: { shop: { owners: ['bob'] } } })
    const ada = await firstAdministrator(gateway)
    const bob = await addPerson(gateway, ada, 'bob', 'administrator')
    const removed = await demand(bob.request('DELETE', '/api/users/bob'))
    expect(namesOf(removed)).toEqual(['project | shop | gets the owner ada instead of bob'])
    const next = await addPerson(gateway, ada, 'bob', 'member')
    expect((await next.request('PUT', '/api/secrets/KEY?scope=project:shop', { value: 'planted' })).status).toBe(403)
  })

  it('a grant for a name that nobody has goes to nobody who takes the name', async () => {
    await using listener = await startListener(() => [ask])
    await using gateway = await startTestGateway({ servers: { shop: { transport: 'http', url: listener.url } } })
    const ada = await firstAdministrator(gateway)
    const kim = await addPerson(gateway, ada, 'kim', 'member')
    const expiresAt = new Date(Date.now() + 3_600_000).toISOString()
    const grant = { tools: 'shop_change', principal: 'agent:reviewer', budget: 5, expiresAt }
    await demand(ada.request('POST', '/api/grants', grant))
    const { token } = await demand(kim.request('POST', '/api/tokens', { agent: 'reviewer' }))
    expect((await as(gateway, token)('POST', '/api/tools/shop_change/call', { arguments: {} })).status).toBe(202)
    expect(listener.calls()).toBe(0)
  })

  it('replaying rules shows a new user nothing of the calls of the old one', async () => {
    await using listener = await startListener(() => [read])
    await using gateway = await startTestGateway({ servers: { shop: { transport: 'http', url: listener.url } } })
    const ada = await firstAdministrator(gateway)
    const rules = { rules: [{ tools: '*', action: 'deny' }] }
    const looked = async (who: TestPerson, agent?: string) =>
      (await who.request('POST', '/api/rules/replay', { rules, ...(agent && { agent }) })).message.looked
    const begins = async () => {
      const kim = await addPerson(gateway, ada, 'kim', 'member')
      const { token } = await demand(kim.request('POST', '/api/tokens', { agent: 'kims-bot' }))
      return { kim, call: () => as(gateway, token)('POST', '/api/tools/shop_peek/call', { arguments: {} }) }
    }
    const first = await begins()
    await first.call()
    await poll(async () => ((await looked(first.kim, 'kims-bot')) === 1 ? true : undefined))
    await demand(ada.request('DELETE', '/api/users/kim'))
    const second = await begins()
    expect([await looked(second.kim), await looked(second.kim, 'kims-bot')]).toEqual([0, 0])
  })

  it('pins and secrets of settings that stay are there as before, because administrators decided about them', async () => {
    await using listener = await startListener(() => [read])
    await using gateway = await startTestGateway({
      agents: { bot: { servers: { shop: { transport: 'http', url: listener.url } } } },
    })
    const ada = await firstAdministrator(gateway)
    const kim = await addPerson(gateway, ada, 'kim', 'member')
    await demand(ada.request('POST', '/api/agents', { name: 'bot', owner: 'kim' }))
    await demand(ada.request('PUT', '/api/secrets/KEY?scope=agent:bot', { value: 'of-an-administrator' }))
    const pin = async () => {
      const { items } = (await ada.request('GET', '/api/pins')).message
      return (items as { id: string; live: { hash: string }; state: string; scope: string }[]).find(
        ({ scope }) => scope === 'agent:bot',
      )
    }
    const { id, live } = await poll(pin)
    await demand(ada.request('POST', `/api/pins/${id}/block`, { hash: live.hash }))
    const before = await pin()
    expect(before).toMatchObject({ state: 'blocked' })
    const removed = await demand(kim.request('DELETE', '/api/agents/bot'))
    expect(namesOf(removed)).toEqual(['configuration | agents.bot | stays; only administrators can reuse the name'])
    expect(await pin()).toEqual(before)
    expect((await ada.request('GET', '/api/secrets')).message.items).toMatchObject([{ scope: 'agent:bot' }])
  })

  it('no name that a person can choose or address leads to a removed user', async () => {
    await using gateway = await startTestGateway({})
    const ada = await firstAdministrator(gateway)
    const name = 'k'.repeat(64)
    await addPerson(gateway, ada, name, 'member')
    const password = 'correct horse battery'
    const loud = { name: name.toUpperCase(), role: 'member', password }
    expect((await ada.request('POST', '/api/users', loud)).error.code).toBe('name-taken')
    const { items } = (await ada.request('GET', '/api/users')).message
    const { id } = (items as { id: string; name: string }[]).find((user) => user.name === name) ?? { id: '' }
    await demand(ada.request('DELETE', `/api/users/${name}`))
    const retired = `${name}~${id}`
    expect((await ada.request('POST', '/api/users', { name: retired, role: 'member', password })).status).toBe(400)
    expect((await ada.request('DELETE', `/api/users/${retired}`)).status).toBe(404)
    expect((await sendJson(gateway, 'POST', '/api/sign-in', { name: retired, password })).status).toBe(401)
    const left = (await ada.request('GET', '/api/users')).message.items
    expect(left).toMatchObject([{ name: 'ada' }])
  })
})

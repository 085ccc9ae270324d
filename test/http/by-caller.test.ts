import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isContractProcedure } from '@orpc/contract'
import { beforeAll, describe, expect, it } from 'vitest'
import { api, door } from '../../src/contract/api.ts'
import type { Principal } from '../../src/contract/principal.ts'
import { adminToken } from '../../src/identity/identity.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { initialize, modernRequest, type Reply, type Sending, send } from '../scenarios/mcp/raw.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { addPerson, firstAdministrator, signIn } from '../support/people.ts'

/** Whoever may come, and the letter that stands for them in the table. */
const callers = {
  A: 'an administrator',
  M: 'a member',
  O: 'a member who owns a project',
  U: 'an auditor',
  a: 'an agent',
  s: 'a session',
  F: "the administrator's token file",
} as const
type Caller = keyof typeof callers

/**
 * Who gets past the door of each endpoint. Past it a member still gets nothing of somebody else's. Whoever adds an
 * endpoint says here who may use it, beside `http/api-access.ts`: two people, or one person twice, must agree.
 */
const expected: Readonly<Record<string, string>> = {
  status: 'AMOUasF',
  'people.me': 'AMOUasF',
  'people.signOut': 'AMOU',
  'people.setupLink': 'AF',
  'users.list': 'AUF',
  'users.add': 'A',
  'users.change': 'A',
  'users.password': 'AMOU',
  'users.removal': 'A',
  'users.remove': 'A',
  'agents.list': 'AMOUF',
  'agents.add': 'AMOF',
  'agents.change': 'AMOF',
  'agents.removal': 'AMOF',
  'agents.remove': 'AMOF',
  'sessions.list': 'AMOUF',
  'sessions.get': 'AMOUF',
  'sessions.create': 'AMOF',
  'sessions.update': 'AMOF',
  'sessions.end': 'AMOF',
  'tokens.list': 'AMOUF',
  'tokens.create': 'AMOF',
  'tokens.revoke': 'AMOF',
  'servers.list': 'AMOUF',
  'servers.get': 'AMOUF',
  'servers.add': 'AMOF',
  'servers.change': 'AMOF',
  'servers.remove': 'AMOF',
  'servers.enable': 'AMOF',
  'servers.disable': 'AMOF',
  'servers.reconnect': 'AMOF',
  'servers.validate': 'AMOF',
  'servers.validateSaved': 'AMOF',
  'servers.logs': 'AMOUF',
  'servers.risks': 'AMOUF',
  'servers.setRisks': 'AMOF',
  'imports.run': 'AMOF',
  'gallery.list': 'AMOUF',
  'gallery.get': 'AMOUF',
  'gallery.plan': 'AMOF',
  'gallery.add': 'AMOF',
  'registry.search': 'AF',
  'registry.plan': 'AF',
  'registry.add': 'AF',
  'projects.list': 'AMOUF',
  'projects.get': 'AMOUF',
  'projects.add': 'AF',
  'projects.change': 'AF',
  'projects.repository': 'AMOUF',
  'projects.acceptRepository': 'AMOF',
  'projects.removal': 'AF',
  'projects.remove': 'AF',
  'toolsets.list': 'AMOUF',
  'toolsets.get': 'AMOUF',
  'tools.list': 'AMOUasF',
  'tools.get': 'AMOUasF',
  'tools.call': 'AMOUasF',
  'calls.list': 'AMOUasF',
  'calls.get': 'AMOUasF',
  'approvals.list': 'AMOUasF',
  'approvals.get': 'AMOUasF',
  'approvals.answer': 'AMO',
  'grants.list': 'AMOUasF',
  'grants.add': 'AMO',
  'grants.revoke': 'AMO',
  'events.listen': 'AMOUasF',
  'results.get': 'AMOUasF',
  'rules.list': 'AMOUasF',
  'rules.test': 'AMOUasF',
  'rules.replay': 'AMOUasF',
  'rules.set': 'AMOF',
  'secrets.list': 'AMOUF',
  'secrets.set': 'AMOF',
  'secrets.remove': 'AMOF',
  'secrets.rotateKey': 'AF',
  'pins.list': 'AMOUF',
  'pins.get': 'AMOUF',
  'pins.accept': 'AMOF',
  'pins.block': 'AMOF',
  'pins.acceptMany': 'AMOF',
  'audit.list': 'AUF',
  'audit.get': 'AUF',
  'audit.verify': 'AUF',
  'audit.export': 'AUF',
  'audit.confirmClock': 'AF',
  'data.compact': 'AF',
  'webhooks.list': 'AUF',
  'webhooks.deliveries': 'AUF',
  'webhooks.retry': 'AF',
  'webhooks.test': 'AF',
  'config.show': 'AUF',
  'config.effective': 'AMOUF',
  'config.files': 'AUF',
  'config.trust': 'AF',
}

type Operation = { readonly name: string; readonly method: string; readonly path: string }

/** Every endpoint of the contract, with an address at which there is nothing to change. */
function listOperations(part: object, place: readonly string[] = []): Operation[] {
  if (isContractProcedure(part)) {
    const { method = 'POST', path = '/' } = part['~orpc'].route
    // A stream would never end: asking for events that there are not gets past the door, and no further.
    // A search with a wrong limit is refused behind the door, before the registry is contacted.
    const queries: Readonly<Record<string, string>> = { '/events': '?names=nothing', '/registry': '?limit=0' }
    const query = queries[path] ?? ''
    return [{ name: place.join('.'), method, path: `/api${path.replace(/\{[^}]+\}/g, 'nowhere')}${query}` }]
  }
  return Object.entries(part).flatMap(([name, inner]) => listOperations(inner, [...place, name]))
}

const operations = listOperations(api)
const mcpPaths = ['/mcp', '/mcp/t/all', '/mcp/s/nowhere', '/mcp/t/nowhere']

type Credentials = Record<string, string> | readonly string[]

let gateway: TestGateway
let credentials: Record<Caller, Record<string, string>>
let wrong: Record<string, Credentials>
let ahead = 0

beforeAll(async () => {
  gateway = await startTestGateway(
    { toolsets: { all: {} }, projects: { shop: { owners: ['owner'] } } },
    { clock: { ...systemClock, now: () => Date.now() + ahead } },
  )
  const { tokens, sessions } = gateway.gateway
  const operator: Principal = { kind: 'user', name: 'admin-token', role: 'administrator' }
  const ada = await firstAdministrator(gateway)
  const byCookie = (cookie: string) => ({ cookie, origin: gateway.url })
  const byToken = (token: string) => ({ authorization: `Bearer ${token}` })
  const session = await sessions.create(operator, {})
  const file = (await readFile(join(gateway.folder, 'data', 'admin-token'), 'utf8')).trim()
  credentials = {
    A: byCookie(ada.cookie),
    M: byCookie((await addPerson(gateway, ada, 'member', 'member')).cookie),
    O: byCookie((await addPerson(gateway, ada, 'owner', 'member')).cookie),
    U: byCookie((await addPerson(gateway, ada, 'auditor', 'auditor')).cookie),
    a: byToken(await gateway.token('agent')),
    s: byToken(session.token),
    F: byToken(file),
  }
  const expiresAt = new Date(Date.now() + 3_600_000).toISOString()
  const expired = await tokens.create(adminToken, { agent: 'expired', expiresAt })
  const expiredSession = await sessions.create(operator, { expiresAt })
  const revoked = await tokens.create(adminToken, { agent: 'revoked' })
  await tokens.revoke(adminToken, revoked.id)
  const ended = await sessions.create(operator, {})
  await sessions.end(operator, ended.name)
  const removed = await tokens.create(adminToken, { agent: 'removed' })
  await ada.request('DELETE', '/api/agents/removed')
  const gone = await signIn(gateway, 'ada')
  await gone.request('POST', '/api/sign-out')
  ahead = 3_600_001
  const forged = `${credentials.a.authorization?.slice(0, 21)}_${'A'.repeat(43)}`
  const token = credentials.a.authorization ?? ''
  wrong = {
    'no token': {},
    'an expired token': byToken(expired.token),
    'the token of an expired session': byToken(expiredSession.token),
    'the token of a session that was ended': byToken(ended.token),
    'a revoked token': byToken(revoked.token),
    'the token of an agent that was removed': byToken(removed.token),
    'a forged token under a known id': { authorization: forged },
    "a forged token under the id of the administrator's": byToken(`${file.slice(0, 13)}_${'A'.repeat(43)}`),
    'a malformed token': byToken('sp_x'),
    'no token behind the word': { authorization: 'Bearer' },
    'another scheme': { authorization: `Basic ${token.slice(7)}` },
    'two tokens in two headers': ['authorization', token, 'authorization', byToken(file).authorization],
    'two tokens in one header': { authorization: `${token}, ${byToken(file).authorization}` },
    'a wrong token beside a good cookie': { ...credentials.A, ...byToken('sp_x') },
    'an empty token beside a good cookie': { ...credentials.A, authorization: '' },
    'the cookie of a sign-in that has ended': byCookie(gone.cookie),
    'a forged cookie': byCookie(`${ada.cookie.split('.')[0]}.${'A'.repeat(43)}`),
    'two cookies': { ...credentials.A, cookie: `${ada.cookie}; ${gone.cookie}` },
    'a token in the cookie': byCookie(`${ada.cookie.split('=')[0]}=${file}`),
    'a token in the address alone': {},
  }
  return () => gateway.close()
})

function knock(
  { method, path }: Pick<Operation, 'method' | 'path'>,
  by: Credentials,
  more: Sending = {},
): Promise<Reply> {
  const body = method === 'GET' || method === 'DELETE' ? undefined : (bodies[path.split('?', 1)[0] ?? ''] ?? '{}')
  const { host } = new URL(gateway.url)
  const own = Array.isArray(by) ? by : Object.entries(by).flat()
  const headers = ['host', host, 'content-type', 'application/json', ...own]
  const length = ['content-length', String(body?.length ?? 0)]
  return send(gateway.url, {
    method,
    path,
    headers: [...headers, ...length],
    ...(body !== undefined && { body }),
    ...more,
  })
}

/** Where an empty body would do something, or be refused before anybody asks who sent it. */
const bodies: Readonly<Record<string, string>> = {
  '/api/sessions': '{"agent":"nowhere"}',
  '/api/servers/nowhere': '{"definition":{"transport":"http","url":"https://example.com/mcp"}}',
}

it('has a line in the table for every endpoint, and no other', () => {
  expect(Object.keys(expected).sort()).toEqual(operations.map(({ name }) => name).sort())
  expect(listOperations(door).map(({ name }) => name)).toEqual(['signIn'])
})

describe.each(Object.keys(callers) as Caller[])('as %s', (caller) => {
  it(`${callers[caller]} gets past the doors that the table names, and past no other`, async () => {
    const allowed: string[] = []
    const last = operations.toSorted(
      (left, right) => Number(left.name === 'people.signOut') - Number(right.name === 'people.signOut'),
    )
    for (const operation of last) {
      const path = inOwnScope(operation, caller)
      const { status, text } = await knock({ ...operation, path }, credentials[caller])
      expect(status, `${operation.name}: ${text}`).not.toBe(401)
      expect(status, `${operation.name}: ${text}`).toBeLessThan(500)
      if (status !== 403) allowed.push(operation.name)
    }
    const wanted = Object.entries(expected).filter(([, letters]) => letters.includes(caller))
    if ('cookie' in credentials[caller]) await signInAgain(caller)
    expect(allowed.sort()).toEqual(wanted.map(([name]) => name).sort())
  })

  it(`${callers[caller]} ${'AMOU'.includes(caller) ? 'needs a token' : 'is let in'} at the addresses of MCP`, async () => {
    for (const path of mcpPaths) {
      for (const sending of await toMcpRequests(path)) {
        const reply = await knock({ method: sending.method ?? 'POST', path }, credentials[caller], {
          ...sending,
          headers: { ...toRecord(sending.headers), ...credentials[caller] },
        })
        const where = `${sending.method} ${path}: ${reply.text}`
        if ('AMOU'.includes(caller)) expect(reply.status, where).toBe(401)
        else expect([401, 403, 500], where).not.toContain(reply.status)
      }
    }
  })
})

/** Members have servers and secrets of their own, and no others. */
function inOwnScope({ name, path }: Operation, caller: Caller): string {
  const user = { M: 'member', O: 'owner' }[caller as 'M']
  return user !== undefined && (onSavedServers.includes(name) || name === 'secrets.remove')
    ? `${path}?scope=user:${user}`
    : path
}
const onSavedServers = ['change', 'remove', 'enable', 'disable', 'reconnect', 'validateSaved'].map(
  (verb) => `servers.${verb}`,
)

it('lets the owners of a project change its servers, and no other member', async () => {
  for (const operation of operations.filter(({ name }) => onSavedServers.includes(name))) {
    const path = `${operation.path}?scope=project:shop`
    const statusFor = async (caller: Caller) => (await knock({ ...operation, path }, credentials[caller])).status
    for (const caller of ['M', 'U', 'a', 's'] as const)
      expect([operation.name, caller, await statusFor(caller)]).toEqual([operation.name, caller, 403])
    for (const caller of ['A', 'O', 'F'] as const)
      expect([401, 403], `${operation.name} as ${caller}`).not.toContain(await statusFor(caller))
  }
})

async function signInAgain(caller: Caller): Promise<void> {
  const name = { A: 'ada', M: 'member', O: 'owner', U: 'auditor' }[caller as 'A']
  credentials[caller] = { cookie: (await signIn(gateway, name)).cookie, origin: gateway.url }
}

/** Both eras, and every method that is answered. */
async function toMcpRequests(path: string): Promise<Sending[]> {
  const accept = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
  const modern = await modernRequest(gateway, 'tools/list', {}, { path, headers: { authorization: undefined } })
  return [
    { method: 'POST', headers: accept, body: JSON.stringify(initialize()) },
    { method: 'POST', headers: accept, body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}' },
    { method: 'POST', ...modern },
    { method: 'GET', headers: accept },
    { method: 'DELETE', headers: accept },
    { method: 'PUT', headers: accept },
  ]
}

function toRecord(headers: Sending['headers']): Record<string, string> {
  return { ...(headers as Record<string, string>) }
}

it('refuses whoever comes with the wrong thing, everywhere', async () => {
  for (const [what, by] of Object.entries(wrong)) {
    for (const operation of operations) {
      const path = what.includes('address') ? `${operation.path.split('?')[0]}?token=x&access_token=x` : operation.path
      const { status } = await knock({ ...operation, path }, by)
      expect([what, operation.name, status]).toEqual([what, operation.name, 401])
    }
    for (const path of [...mcpPaths, '/metrics', '/api', '/api/openapi.json', '/api/nothing', '/favicon.ico']) {
      for (const method of ['GET', 'POST', 'DELETE', 'PUT', 'OPTIONS']) {
        const { status } = await knock({ method, path }, by)
        expect([what, method, path, status]).toEqual([what, method, path, 401])
      }
    }
  }
})

it('gives the pages of the dashboard to whoever asks, to be read only, since they hold nothing', async () => {
  for (const by of [{}, ...Object.values(credentials)]) {
    for (const path of ['/', '/sign-in', '/approvals', '/approvals/nowhere']) {
      const page = await knock({ method: 'GET', path }, by)
      expect([path, page.status, page.headers['content-type']]).toEqual([path, 200, 'text/html; charset=utf-8'])
      for (const method of ['POST', 'DELETE', 'PUT', 'OPTIONS'])
        expect([401, 403, 404], `${method} ${path}`).toContain((await knock({ method, path }, by)).status)
    }
  }
})

/** Other ways to write an address, for whoever hopes that one part of us reads it otherwise than another. */
const spellings: readonly ((path: string) => string)[] = [
  (path) => `/${path}`,
  (path) => path.replace('/api/', '/api//'),
  (path) => path.replace('/api/', '/api/./'),
  (path) => path.replace('/api/', '/api/../api/'),
  (path) => path.replace('/api/', '/api/%2e%2e/api/'),
  (path) => path.replace('/api/', '/x/../api/'),
  (path) => path.replace('/api/', '/livez/../api/'),
  (path) => path.replace('/api/', '/api/sign-in/../'),
  (path) => path.replace('/api/', '/api%2f'),
  (path) => path.replace('/api/', '/API/'),
  (path) => path.replace('/api/', '/%61pi/'),
  (path) => path.replace('/api/', '\\api\\'),
  (path) => `${path}/`,
  (path) => `${path};x`,
  (path) => `${path}%00`,
  (path) => `${path}#/livez`,
  (path) => `${path}?/livez`,
  (path) => `http://localhost${path}`,
  (path) => `http://evil.example${path}`,
]

it('decides the same however the address is written', async () => {
  for (const operation of operations) {
    for (const spell of spellings) {
      const path = spell(operation.path)
      const anonymous = await knock({ ...operation, path }, {})
      expect([400, 401], `${operation.method} ${path}`).toContain(anonymous.status)
      if (expected[operation.name]?.includes('a')) continue
      const agent = await knock({ ...operation, path }, credentials.a)
      expect([400, 403, 404], `${operation.method} ${path} as an agent`).toContain(agent.status)
    }
  }
})

it('answers nobody who comes by another host or from another site, whoever it is', async () => {
  for (const caller of ['A', 'a', 'F'] as const) {
    for (const operation of operations) {
      const { origin: _, ...by } = credentials[caller]
      const foreignSite = await knock(operation, { ...by, origin: 'https://evil.example' })
      expect([operation.name, foreignSite.status]).toEqual([operation.name, 403])
      const headers = { ...by, host: 'evil.example', 'content-type': 'application/json' }
      const foreignHost = await send(gateway.url, { method: operation.method, path: operation.path, headers })
      expect([operation.name, foreignHost.status]).toEqual([operation.name, 403])
    }
  }
})

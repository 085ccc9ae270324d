import { readFile } from 'node:fs/promises'
import { Agent } from 'node:http'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { adminToken } from '../../../src/identity/identity.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { readRecord, startHttpFixture } from '../../fixtures/fixtures.ts'
import { startTestGateway, type TestGateway } from '../../support/gateway.ts'
import {
  allowAll,
  ask,
  initialize,
  modernRequest,
  openSession,
  type Reply,
  recordedCalls,
  send,
  startRecordingGateway,
  temporaryFolder,
  textOf,
} from './raw.ts'

let gateway: TestGateway
let record: string

beforeAll(async () => {
  const started = await startRecordingGateway({ rules: allowAll, toolsets: { all: {} } })
  ;({ gateway, record } = started)
  return started.close
})

const routes = [
  ['POST', '/mcp'],
  ['GET', '/mcp'],
  ['DELETE', '/mcp'],
  ['OPTIONS', '/mcp'],
  ['POST', '/mcp/t/all'],
  ['POST', '/mcp/s/rec'],
  ['POST', '/mcp/t/nowhere'],
  ['GET', '/api/status'],
  ['GET', '/api/servers'],
  ['POST', '/api/tools/rec_write_thing/call'],
  ['GET', '/api/tokens'],
  ['POST', '/api/tokens'],
  ['GET', '/api/audit'],
  ['GET', '/api/openapi.json'],
  ['GET', '/metrics'],
  ['GET', '/favicon.ico'],
] as const

const fabricated = `sp_${'a'.repeat(10)}_${'A'.repeat(43)}`
const unsigned = 'eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9.'

const wrong: readonly (readonly [string, () => readonly string[] | Promise<readonly string[]>])[] = [
  ['no token', () => []],
  ['an empty header', () => ['']],
  ['a scheme without a token', () => ['Bearer']],
  ['a scheme and blanks', () => ['Bearer   ']],
  ['a made-up token', () => [`Bearer ${fabricated}`]],
  ['something that is no token', () => ['Bearer x']],
  ['an unsigned web token', () => [`Bearer ${unsigned}`]],
  ['a token without its scheme', async () => [await gateway.token('agent')]],
  ['a token under another scheme', async () => [`Basic ${await gateway.token('agent')}`]],
  ['the start of a token', async () => [`Bearer ${(await gateway.token('agent')).slice(0, -1)}`]],
  ['a token and more', async () => [`Bearer ${await gateway.token('agent')} x`]],
  ['a token with its last letter changed', async () => [`Bearer ${changed(await gateway.token('agent'))}`]],
  ['a token twice', async () => [`Bearer ${await gateway.token('agent')}`, `Bearer ${await gateway.token('agent')}`]],
  ['a token and another scheme', async () => [`Bearer ${await gateway.token('agent')}`, 'Basic YTpi']],
  ['two tokens, comma between', async () => [`Bearer ${await gateway.token('agent')}, Bearer ${fabricated}`]],
]

function changed(token: string): string {
  return `${token.slice(0, -1)}${token.endsWith('A') ? 'B' : 'A'}`
}

async function knock(method: string, path: string, authorizations: readonly string[], body = call): Promise<Reply> {
  const { host } = new URL(gateway.url)
  const headers = ['host', host, 'content-type', 'application/json', 'accept', 'application/json, text/event-stream']
  return send(gateway.url, {
    method,
    path,
    headers: [
      ...headers,
      ...['content-length', method === 'POST' ? String(body.length) : '0'],
      ...authorizations.flatMap((value) => ['authorization', value]),
    ],
    ...(method === 'POST' && { body }),
  })
}

const call = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name: 'rec_write_thing', arguments: {} },
})

function expectRefused(reply: Reply, where: string): void {
  expect(reply.status, where).toBe(401)
  expect(reply.headers['www-authenticate'], where).toMatch(/^Bearer\b/)
  expect(reply.headers['content-type'], where).toBe('application/json')
  expect(reply.error, where).toMatchObject({
    code: expect.stringMatching(/^token-/),
    message: expect.any(String),
    hint: expect.stringContaining('sallyport tokens create'),
  })
}

describe.each(wrong)('whoever comes with %s', (_, authorizations) => {
  it('is refused on every route, with a reason, and nothing is done', async () => {
    const before = await recordedCalls(gateway)
    const tokens = gateway.gateway.tokens.list(adminToken).length
    for (const [method, path] of routes) {
      expectRefused(await knock(method, path, await authorizations()), `${method} ${path}`)
    }
    expectRefused(await knock('POST', '/mcp', await authorizations(), JSON.stringify(initialize())), 'initialize')
    expect(await readRecord(record)).toEqual([])
    expect(await recordedCalls(gateway)).toEqual(before)
    expect(gateway.gateway.tokens.list(adminToken).length - tokens).toBeLessThanOrEqual(1)
  })
})

it('answers without a token only whether it lives and is ready, and names nothing there', async () => {
  for (const [path, status] of [
    ['/livez', 'ok'],
    ['/readyz', 'ready'],
  ]) {
    const reply = await send(gateway.url, { method: 'GET', path: String(path) })
    expect(reply.status).toBe(200)
    expect(reply.message).toEqual({ status })
  }
  for (const path of ['/livez/', '/livez/x', '/LIVEZ', '/readyz%2f', '/livez;/mcp']) {
    expect((await send(gateway.url, { method: 'GET', path })).status, path).toBe(401)
  }
})

it('refuses a revoked token at once, in the middle of a session, with a body that says so', async () => {
  const made = await gateway.gateway.tokens.create(adminToken, { agent: 'leaver' })
  const authorization = `Bearer ${made.token}`
  const session = await openSession(gateway, { agent: 'leaver' })
  const say = () => session.post({ id: 7, method: 'tools/list' }, { authorization })
  expect((await say()).status).toBe(200)
  await gateway.gateway.tokens.revoke(adminToken, made.id)
  const refused = await say()
  expectRefused(refused, 'revoked')
  expect(refused.error).toMatchObject({ code: 'token-invalid', message: 'This token was revoked' })
  expect((await session.request('tools/list')).status).toBe(200)
})

it('refuses a token from the moment at which it expires', async () => {
  let ahead = 0
  await using later = await startTestGateway({}, { clock: { ...systemClock, now: () => Date.now() + ahead } })
  const expiresAt = new Date(Date.now() + 3_600_000).toISOString()
  const { token } = await later.gateway.tokens.create(adminToken, { agent: 'guest', expiresAt })
  const say = () => ask(later, 'tools/list', {}, { headers: { authorization: `Bearer ${token}` } })
  expect((await say()).status).toBe(200)
  ahead = 3_600_001
  const refused = await say()
  expectRefused(refused, 'expired')
  expect(refused.error).toMatchObject({ message: 'This token has expired' })
})

it("lets the administrator's token in, and gives no other agent its rights", async () => {
  const admin = (await readFile(join(gateway.folder, 'data', 'admin-token'), 'utf8')).trim()
  const list = async (authorization: string) =>
    (await send(gateway.url, { method: 'GET', path: '/api/tokens', headers: { authorization } })).status
  expect(await list(`Bearer ${admin}`)).toBe(200)
  expect(await list(`bearer ${admin}`)).toBe(200)
  expect(await list(`Bearer ${await gateway.token('agent')}`)).toBe(403)
})

it('tells a refused caller so on every connection, also one that is kept and one whose body comes late', async () => {
  const http = new Agent({ keepAlive: true, maxSockets: 8 })
  const body = JSON.stringify({ ...initialize(), padding: 'x'.repeat(200_000) })
  const headers = { authorization: `Bearer ${fabricated}`, 'content-type': 'application/json' }
  const kept = await Promise.all(
    Array.from({ length: 100 }, () => send(gateway.mcpUrl, { headers, body, agent: http }).catch((error) => error)),
  )
  http.destroy()
  expect(kept.map(({ status }) => status)).toEqual(Array.from({ length: 100 }, () => 401))
  const fetched = await Promise.all(
    Array.from({ length: 100 }, () => fetch(gateway.mcpUrl, { method: 'POST', headers, body }).then((r) => r.json())),
  )
  for (const said of fetched) expect(said).toMatchObject({ error: { code: 'token-invalid' } })
})

it('never passes the token of a caller on to a server', async () => {
  await using folderHere = await temporaryFolder()
  const file = join(folderHere.path, 'web.jsonl')
  await using web = await startHttpFixture('recording', ['--http', '--record', file])
  await using here = await startTestGateway({ servers: { web: { transport: 'http', url: web.url } }, rules: allowAll })
  const token = await here.token('canary')
  const secretPart = token.slice(15)
  const { headers, body } = await modernRequest(
    here,
    'tools/call',
    { name: 'web_echo', arguments: { text: 'x' } },
    { agent: 'canary', headers: { cookie: `t=${token}`, 'x-api-key': token } },
  )
  expect(textOf((await send(here.mcpUrl, { headers, body })).result)).toBe('x')
  const session = await openSession(here, { agent: 'canary' })
  expect(textOf((await session.call('web_echo', { text: 'y' })).result)).toBe('y')
  const received = await readFile(file, 'utf8')
  expect(received.split('\n').filter(Boolean)).toHaveLength(2)
  expect(received).not.toContain(secretPart)
  expect(JSON.stringify(await recordedCalls(here))).not.toContain(secretPart)
})

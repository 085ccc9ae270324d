import { readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readCancellations, startHttpFixture } from '../fixtures/fixtures.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { createFolder, type Folder, recording, until } from './support.ts'

let gateway: TestGateway
let administrator: string
let record: string
let folder: Folder

beforeAll(async () => {
  folder = await createFolder()
  record = join(folder.path, 'record')
  const { command, args } = recording('--record', record)
  gateway = await startTestGateway({ servers: { rec: { transport: 'stdio', command, args } } })
  administrator = (await readFile(`${gateway.folder}/data/admin-token`, 'utf8')).trim()
})

afterAll(async () => {
  await gateway?.close()
  await folder?.[Symbol.asyncDispose]()
})

type Sent = { method?: string; body?: unknown; type?: string }

async function ask(token: string, path: string, { method, body, type = 'application/json' }: Sent = {}) {
  const response = await fetch(`${gateway.url}/api${path}`, {
    method: method ?? (body === undefined ? 'GET' : 'POST'),
    headers: { authorization: `Bearer ${token}`, ...(body !== undefined && { 'content-type': type }) },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const answer: unknown = await response.json()
  return { status: response.status, answer }
}

describe('REST', () => {
  it('answers a call with 200, the call and the result', async () => {
    const asked = await ask(administrator, '/tools/rec_echo/call', { body: { arguments: { text: 'hi' } } })
    expect(asked).toMatchObject({
      status: 200,
      answer: { call: { state: 'ok', surface: 'http' }, result: { content: [{ type: 'text', text: 'hi' }] } },
    })
  })

  it('answers a failed tool with 200 and its own words', async () => {
    const asked = await ask(administrator, '/tools/rec_fail/call', { body: {} })
    expect(asked).toMatchObject({ status: 200, answer: { call: { state: 'tool-error' }, result: { isError: true } } })
  })

  it('answers a call that a person is asked about with 202, the call and the approval', async () => {
    const asked = await ask(administrator, '/tools/rec_destroy_thing/call', { body: { arguments: { path: 'x' } } })
    expect(asked).toMatchObject({
      status: 202,
      answer: {
        call: { id: expect.stringMatching(/^call_/), state: 'waiting' },
        approval: { id: expect.stringMatching(/^approval_/), state: 'waiting', arguments: { path: 'x' } },
      },
    })
  })

  it.each([
    ['/nowhere', {}, 404, 'not-found'],
    ['/servers/none', {}, 404, 'server-not-found'],
    ['/tools/none', {}, 404, 'tool-not-found'],
    ['/tools/none/call', { body: {} }, 404, 'tool-not-found'],
    ['/tools?toolset=none', {}, 404, 'toolset-not-found'],
    ['/calls/none', {}, 404, 'call-not-found'],
    ['/audit/none:1', {}, 404, 'not-found'],
    ['/tokens/none', { method: 'DELETE' }, 404, 'not-found'],
    ['/tools/rec_echo/call', { body: '{' }, 400, 'request-invalid'],
    ['/tools/rec_echo/call', { body: '[]' }, 400, 'request-invalid'],
    ['/tools/rec_echo/call', { body: `${'['.repeat(1000)}${']'.repeat(1000)}` }, 400, 'request-invalid'],
    [
      '/tools/rec_echo/call',
      { body: 'arguments=x', type: 'application/x-www-form-urlencoded' },
      400,
      'request-invalid',
    ],
    ['/tools/rec_echo/call', { body: { arguments: { text: 'x'.repeat(1_100_000) } } }, 413, 'request-too-large'],
  ])('answers %s with the status of the error table', async (path, sent, status, code) => {
    const asked = await ask(administrator, path, sent)
    expect(asked).toMatchObject({
      status,
      answer: { error: { code, message: expect.any(String), hint: expect.any(String) } },
    })
  })

  it.each([
    ['/servers', { body: { name: 'x', definition: { transport: 'http', url: 7 } } }, 'definition.url'],
    ['/servers', { body: { name: 'not a name', definition: { transport: 'http', url: 'http://x' } } }, 'name'],
    ['/servers', { body: { name: 'x', definition: { transport: 'pigeon' } } }, 'definition.transport'],
    ['/tokens', { body: { agent: '' } }, 'agent'],
    ['/audit?limit=0', {}, 'limit'],
    ['/audit?kind=thought', {}, 'kind'],
    ['/servers/rec?scope=moon', {}, 'scope'],
    ['/tools/rec_echo/call', { body: { arguments: 'x' } }, 'arguments'],
  ])('names the field that is wrong: %s', async (path, sent, field) => {
    const asked = await ask(administrator, path, sent)
    expect(asked).toMatchObject({
      status: 400,
      answer: { error: { code: 'request-invalid', message: expect.stringContaining(field), details: { field } } },
    })
  })

  it('takes a definition only whole, and changes nothing otherwise', async () => {
    const before = await ask(administrator, '/config')
    await ask(administrator, '/servers', { body: { name: 'x', definition: { transport: 'stdio' } } })
    expect(await ask(administrator, '/config')).toEqual(before)
  })

  it('adds, replaces, switches and removes a server, each answered with its state', async () => {
    const definition = recording()
    const added = await ask(administrator, '/servers', { body: { name: 'extra', definition } })
    expect(added).toMatchObject({
      status: 201,
      answer: { name: 'extra', state: 'connected', tools: expect.any(Array) },
    })
    const again = await ask(administrator, '/servers', { body: { name: 'extra', definition } })
    expect(again).toMatchObject({ status: 409, answer: { error: { code: 'server-exists' } } })
    const changed = await ask(administrator, '/servers/extra?scope=global', {
      method: 'PUT',
      body: { definition: { ...definition, tools: { include: ['echo'] } } },
    })
    expect(changed).toMatchObject({ status: 200, answer: { state: 'connected', tools: [{ name: 'extra_echo' }] } })
    const disabled = await ask(administrator, '/servers/extra/disable', { method: 'POST' })
    expect(disabled).toMatchObject({ status: 200, answer: { state: 'disabled', enabled: false } })
    const removed = await ask(administrator, '/servers/extra', { method: 'DELETE' })
    expect(removed).toEqual({ status: 200, answer: { removed: 'extra' } })
    const subjects = await ask(administrator, '/audit?subject=server:extra')
    expect(subjects.answer).toMatchObject({
      items: expect.arrayContaining([expect.objectContaining({ kind: 'change' })]),
    })
  })

  it('takes a definition also flat beside the name, and tries one without saving it', async () => {
    const { command, args } = recording()
    const flat = { transport: 'stdio', command, args }
    const added = await ask(administrator, '/servers', { body: { name: 'flat', ...flat } })
    expect(added).toMatchObject({ status: 201, answer: { name: 'flat', state: 'connected' } })
    const changed = await ask(administrator, '/servers/flat', { method: 'PUT', body: { ...flat, description: 'new' } })
    expect(changed).toMatchObject({ status: 200, answer: { description: 'new' } })
    const tried = await ask(administrator, '/servers/nowhere/validate', { body: { ...flat, command: 'no-such' } })
    expect(tried).toMatchObject({ status: 200, answer: { ok: false, failure: { class: 'spawn' } } })
    expect(await ask(administrator, '/servers/nowhere')).toMatchObject({ status: 404 })
    expect(await ask(administrator, '/servers/flat', { method: 'DELETE' })).toMatchObject({ status: 200 })
  })

  it('describes itself for programs', async () => {
    const { status, answer } = await ask(administrator, '/openapi.json')
    expect(status).toBe(200)
    expect(answer).toMatchObject({
      openapi: expect.stringMatching(/^3\./),
      info: { title: 'Sallyport' },
      security: [{ bearer: [] }, { cookie: [] }],
      components: { securitySchemes: { bearer: { scheme: 'bearer' } }, schemas: { Error: {}, Server: {}, Tool: {} } },
      paths: {
        '/tools/{name}/call': { post: { responses: { 200: {}, default: { $ref: '#/components/responses/Error' } } } },
        '/servers/{name}': { get: {}, put: {}, delete: {} },
      },
    })
  })

  it('ends the call of a caller who went away', async () => {
    const { hostname, port } = new URL(gateway.url)
    const socket = connect(Number(port), hostname)
    const body = JSON.stringify({ arguments: { text: 'slow', delayMs: 30_000 } })
    socket.write(
      `POST /api/tools/rec_echo/call HTTP/1.1\r\nHost: ${hostname}:${port}\r\nAuthorization: Bearer ${administrator}\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    )
    await until(() => (gateway.gateway.status().calls.running > 0 ? true : undefined))
    socket.destroy()
    await until(() => (gateway.gateway.status().calls.running === 0 ? true : undefined))
    expect(await until(async () => (await readCancellations(record))[0])).toMatchObject({
      cancelled: expect.anything(),
    })
    const { items } = await gateway.gateway.calls.list({ limit: 1, state: 'cancelled' })
    expect(items).toMatchObject([{ tool: 'rec_echo', state: 'cancelled' }])
  })
})

describe('agents on REST', () => {
  it.each([
    ['/servers', {}],
    ['/servers/rec', {}],
    ['/servers/rec/logs', {}],
    ['/servers/rec/reconnect', { body: {} }],
    ['/servers/validate', { body: { definition: { transport: 'stdio', command: 'touch' } } }],
    ['/servers', { body: { name: 'mine', definition: { transport: 'stdio', command: 'touch' } } }],
    ['/tokens', {}],
    ['/tokens', { body: { agent: 'other' } }],
    ['/audit', {}],
    ['/config', {}],
    ['/config/effective', {}],
    ['/calls?principal=user:admin-token', {}],
  ])('may not %s', async (path, sent) => {
    const asked = await ask(await gateway.token('bot'), path, sent)
    expect(asked).toMatchObject({ status: 403, answer: { error: { code: 'forbidden' } } })
  })

  it('see a reduced status, their tools, and of calls only their own', async () => {
    const token = await gateway.token('bot')
    expect((await ask(token, '/status')).answer).toEqual({ healthy: true, version: expect.any(String) })
    expect((await ask(token, '/tools/rec_echo')).status).toBe(200)
    const others = await ask(administrator, '/tools/rec_echo/call', { body: { arguments: { text: 'x' } } })
    const own = await ask(token, '/tools/rec_echo/call', { body: { arguments: { text: 'x' } } })
    const id = ({ answer }: { answer: unknown }) => Object(Object(answer).call).id
    await until(
      async () => (await gateway.gateway.calls.find(id(own))) && (await gateway.gateway.calls.find(id(others))),
    )
    expect((await ask(token, `/calls/${id(own)}`)).status).toBe(200)
    expect((await ask(token, `/calls/${id(others)}`)).status).toBe(404)
    expect((await ask(token, '/calls')).answer).toMatchObject({ items: [{ principal: 'agent:bot' }], next: null })
  })

  it('need a token for everything, the description included', async () => {
    for (const path of ['/api/openapi.json', '/api/status', '/api/nowhere']) {
      expect((await fetch(gateway.url + path)).status).toBe(401)
    }
  })
})

describe('limits and times', () => {
  it('answer 429 with the seconds to wait, and 504 for a tool that takes too long', async () => {
    await using busy = await startHttpFixture('hostile-http', ['too-many'])
    const { command, args } = recording()
    await using limited = await startTestGateway({
      servers: {
        busy: { transport: 'http', url: busy.url },
        slow: { transport: 'stdio', command, args, timeout: { call: 100 } },
      },
      rules: [{ action: 'allow' }],
    })
    const call = (tool: string, body: object) =>
      limited.fetch('bot', `/api/tools/${tool}/call`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
    const [tool] = limited.gateway.catalog.listTools({ kind: 'agent', name: 'bot' }, { kind: 'all' })
    const refused = await call(tool?.name ?? '', {})
    expect(tool?.server).toBe('busy')
    expect(refused.status).toBe(429)
    expect(refused.headers.get('retry-after')).toBe('1')
    const late = await call('slow_echo', { arguments: { text: 'x', delayMs: 5000 } })
    expect(late.status).toBe(504)
    expect(await late.json()).toMatchObject({ error: { code: 'call-timeout' } })
  })
})

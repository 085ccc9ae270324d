import { connect } from 'node:net'
import { gzipSync } from 'node:zlib'
import { beforeAll, describe, expect, it } from 'vitest'
import { readRecord } from '../../fixtures/fixtures.ts'
import { parseJson } from '../../fixtures/lib/json-rpc.ts'
import type { TestGateway } from '../../support/gateway.ts'
import {
  allowAll,
  ask,
  headersOf,
  initialize,
  modernRequest,
  openSession,
  type RawSession,
  type Reply,
  send,
  startRecordingGateway,
  textOf,
} from './raw.ts'

let gateway: TestGateway
let record: string
let session: RawSession
const limit = 200_000

beforeAll(async () => {
  const started = await startRecordingGateway({ rules: allowAll, limits: { request: limit } })
  ;({ gateway, record } = started)
  session = await openSession(gateway)
  return started.close
})

async function post(body: string | Buffer, headers: Record<string, string> = {}): Promise<Reply> {
  const usual = await headersOf(gateway, 'agent', { 'mcp-session-id': session.id, ...headers })
  return send(gateway.mcpUrl, { headers: usual, body })
}

async function expectAlive(): Promise<void> {
  expect(textOf((await session.call('rec_echo', { text: 'alive' })).result)).toBe('alive')
}

const call = (params: string, id = '1') => `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":${params}}`

describe('a body that is no message', () => {
  it.each([
    ['empty', '', -32700],
    ['blank', '  \n ', -32700],
    ['not JSON', 'hello', -32700],
    ['cut short', '{"jsonrpc":"2.0","id":1,"method":"ping"', -32700],
    ['two messages', '{"jsonrpc":"2.0","id":1,"method":"ping"}{"jsonrpc":"2.0","id":2,"method":"ping"}', -32700],
    ['with a comma too many', '{"jsonrpc":"2.0","id":1,"method":"ping",}', -32700],
    ['a bare line feed in its method', '{"jsonrpc":"2.0","id":1,"method":"pi\nng"}', -32700],
    ['a bare line feed in its id', '{"jsonrpc":"2.0","id":"a\n\nb","method":"ping"}', -32700],
    ['an escape that is none in its method', '{"jsonrpc":"2.0","id":1,"method":"\\x"}', -32700],
    ['a number', '7', -32600],
    ['text', '"ping"', -32600],
    ['nothing', 'null', -32600],
    ['an empty object', '{}', -32600],
    ['of another version', '{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600],
    ['without a version', '{"id":1,"method":"ping"}', -32600],
    ['without a method', '{"jsonrpc":"2.0","id":1}', -32600],
    ['a method that is no text', '{"jsonrpc":"2.0","id":1,"method":7}', -32600],
    ['an id that is nothing', '{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600],
    ['an id that is an object', '{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}', -32600],
    ['an id that is true', '{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600],
    ['an id twice', '{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', -32600],
    ['an id twice, once in disguise', '{"jsonrpc":"2.0","id":1,"\\u0069d":2,"method":"ping"}', -32600],
    ['a method twice', '{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}', -32600],
    ['params twice', '{"jsonrpc":"2.0","id":1,"method":"ping","params":{},"params":{}}', -32600],
    ['params that are a list', '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[1]}', -32600],
    ['params that are text', '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":"x"}', -32600],
    ['params that are nothing', '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":null}', -32600],
  ])('is refused: %s', async (_, body, code) => {
    const reply = await post(body)
    expect(reply.status, reply.text).toBe(400)
    expect(reply.error, reply.text).toMatchObject({
      code,
      message: expect.any(String),
      data: { hint: expect.any(String) },
    })
  })

  it.each(['[]', '[{"jsonrpc":"2.0","id":1,"method":"ping"}]', ' \n[1,2]'])(
    'but a batch is refused with a sentence that says so: %j',
    async (body) => {
      const reply = await post(body)
      expect(reply.status).toBe(400)
      expect(reply.error).toMatchObject({ code: -32600, message: expect.stringContaining('Batches are not taken') })
    },
  )

  it.each([
    ['text/plain', 'text/plain'],
    ['a form', 'application/x-www-form-urlencoded'],
    ['several parts', 'multipart/form-data; boundary=x'],
    ['something like JSON', 'application/jsonp'],
    ['nothing', ''],
  ])('is not read when it is sent as %s', async (_, type) => {
    const reply = await post(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' }), { 'content-type': type })
    expect(reply.status).toBe(400)
    expect(reply.error).toMatchObject({ message: expect.stringContaining('application/json') })
  })

  it('is read with a character set beside its type, however that is written', async () => {
    for (const type of ['application/json; charset=utf-8', 'Application/JSON', 'application/json ;charset=UTF-8']) {
      const reply = await post(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' }), { 'content-type': type })
      expect(reply.status, type).toBe(200)
    }
  })
})

describe('a body that is too much', () => {
  it('in bytes is refused with 413, whether its length is told or not, and the gateway lives on', async () => {
    const body = call(JSON.stringify({ name: 'rec_echo', arguments: { text: 'x'.repeat(limit) } }))
    const told = await post(body)
    expect(told.status).toBe(413)
    expect(told.error).toMatchObject({
      data: { code: 'request-too-large', hint: expect.stringContaining('limits.request') },
    })
    const untold = await post(body, { 'transfer-encoding': 'chunked' })
    expect(untold.status).toBe(413)
    expect((await readRecord(record)).some((entry) => String(entry.arguments?.text).length >= limit)).toBe(false)
    await expectAlive()
  })

  it('and never ends is answered with 413 and cut off', async () => {
    const { hostname, port, host } = new URL(gateway.url)
    const headers = await headersOf(gateway, 'agent', { host, 'transfer-encoding': 'chunked' })
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
    const piece = `10000\r\n${'x'.repeat(0x10000)}\r\n`
    const socket = connect(Number(port), hostname)
    const flood = () => {
      while (socket.writable && socket.write(piece));
    }
    let answer = ''
    socket.on('data', (chunk) => {
      answer += chunk
    })
    socket.on('error', () => {})
    socket.on('drain', flood)
    const cut = new Promise((resolve) => socket.on('close', resolve))
    socket.write(`POST /mcp HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`)
    flood()
    await cut
    expect(answer).toMatch(/^HTTP\/1\.1 413 /)
    await expectAlive()
  })

  it('in compressed form is not taken at all', async () => {
    const bomb = gzipSync(Buffer.alloc(20 * 1024 * 1024, 0x20))
    const reply = await post(bomb, { 'content-encoding': 'gzip' })
    expect(reply.status).toBe(400)
    expect(reply.error).toMatchObject({ message: expect.stringContaining('Compressed') })
    await expectAlive()
  })

  it.each([
    ['arguments 600 deep', () => call(`{"name":"rec_echo","arguments":{"text":${'['.repeat(600)}${']'.repeat(600)}}}`)],
    ['a body of opening brackets', () => '['.repeat(limit - 10)],
    ['an object of opening objects', () => '{"a":'.repeat(30_000)],
    ['params of opening brackets', () => `{"jsonrpc":"2.0","id":1,"method":"ping","params":${'['.repeat(150_000)}`],
    ['an id deep below', () => `{"jsonrpc":"2.0","id":${'['.repeat(9000)}${']'.repeat(9000)},"method":"ping"}`],
  ])('in depth is refused: %s', async (_, body) => {
    const reply = await post(body())
    expect(reply.status).toBe(400)
    expect(reply.error.message).toEqual(expect.any(String))
    await expectAlive()
  })

  it('is fine up to what can be built again', async () => {
    const deep = `${'['.repeat(400)}1${']'.repeat(400)}`
    const reply = await post(call(`{"name":"rec_read_thing","arguments":{"deep":${deep}}}`))
    expect(textOf(reply.result)).toBe(`{"deep":${deep}}`)
  })

  it('in headers is refused, and the gateway lives on', async () => {
    const reply = await post('{}', { 'x-large': 'x'.repeat(40_000) }).catch(() => undefined)
    expect([undefined, 431]).toContain(reply?.status)
    await expectAlive()
  })
})

describe('keys with a meaning to JavaScript', () => {
  it('arrive as they were sent, __proto__ is refused, and nothing changes here', async () => {
    const odd = '{"constructor":{"prototype":{"polluted":"yes"}},"toString":1,"hasOwnProperty":null}'
    for (const tool of ['rec_read_thing', 'rec_write_thing']) {
      const reply = await post(call(`{"name":"${tool}","arguments":${odd}}`))
      expect(textOf(reply.result)).toBe(odd)
    }
    expect(Object.prototype).not.toHaveProperty('polluted')
    const params = `{"__proto__":{"name":"rec_echo"},"arguments":{"text":"x"}}`
    expect((await post(call(params))).error).toMatchObject({ code: -32602 })
    const message = '{"jsonrpc":"2.0","id":1,"method":"ping","__proto__":{"method":"tools/call"},"constructor":1}'
    expect((await post(message)).result).toEqual({})
    const meta = `{"name":"rec_echo","arguments":{"text":"m"},"_meta":{"__proto__":{"polluted":1},"mine":1}}`
    expect((await post(call(meta))).error).toMatchObject({ code: -32602, data: { code: 'json-inexact' } })
  })

  it('name no tool, no method and no session', async () => {
    for (const name of ['__proto__', 'constructor', 'toString', 'hasOwnProperty']) {
      expect((await session.call(name)).error, name).toMatchObject({ code: -32602 })
      expect((await session.request(name)).error, name).toMatchObject({ code: -32601 })
    }
  })
})

describe('a call that is not one', () => {
  it.each([
    ['no name', '{"arguments":{}}'],
    ['an empty name', '{"name":"","arguments":{}}'],
    ['a name that is a number', '{"name":7}'],
    ['a name that is a list', '{"name":["rec_echo"]}'],
    ['arguments that are text', '{"name":"rec_write_thing","arguments":"{}"}'],
    ['arguments that are a list', '{"name":"rec_write_thing","arguments":[1]}'],
    ['arguments that are a number', '{"name":"rec_write_thing","arguments":1}'],
    ['arguments that are nothing', '{"name":"rec_write_thing","arguments":null}'],
    ['a name of 100,000 letters', `{"name":"${'x'.repeat(100_000)}"}`],
  ])('is an error of its caller: %s', async (_, params) => {
    const before = (await readRecord(record)).length
    const reply = await post(call(params, '"mine"'))
    expect(reply.message).toMatchObject({ id: 'mine', error: { code: -32602 } })
    expect(reply.text.length).toBeLessThan(2000)
    const { headers } = await modernRequest(gateway, 'tools/call')
    const name: unknown = Object(parseJson(params)).name
    const named: Record<string, string> = typeof name === 'string' && name.length < 100 ? { 'mcp-name': name } : {}
    const meta = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}`
    const body = call(`${params.slice(0, -1)}${meta}`, '"mine"')
    const modern = await send(gateway.mcpUrl, { headers: { ...headers, ...named }, body })
    expect(modern.message).toMatchObject({ id: 'mine', error: { code: expect.any(Number) } })
    expect(await readRecord(record)).toHaveLength(before)
  })

  it('but one without arguments is a call', async () => {
    expect(textOf((await post(call('{"name":"rec_read_thing"}'))).result)).toBe('{}')
  })
})

describe('the id of a request', () => {
  it.each([
    '0',
    '-1',
    '-0',
    '1.5',
    '1.0',
    '1e3',
    '12345678901234567890123',
    '9007199254740993',
    '""',
    '"1"',
    '"with \\"quotes\\" and \\\\"',
    '"caf\\u00e9"',
    '"☂ größe"',
    '"<script>"',
    '"\\n\\r\\u2028"',
    `"${'x'.repeat(10_000)}"`,
  ])('comes back letter by letter: %j', async (id) => {
    const echoed = (reply: Reply) => /"id":(.*?),"(?:result|error)":/s.exec(reply.text)?.[1]
    expect(echoed(await post(`{"jsonrpc":"2.0","id":${id},"method":"ping"}`))).toBe(id)
    expect(echoed(await post(call('{"name":"rec_echo","arguments":{"text":"x"}}', id)))).toBe(id)
    expect(echoed(await post(call('{"name":"nowhere"}', id)))).toBe(id)
    const streamed = call('{"name":"rec_progress","arguments":{"steps":1},"_meta":{"progressToken":"p"}}', id)
    const reply = await post(streamed)
    expect(reply.headers['content-type']).toBe('text/event-stream')
    expect(echoed(reply)).toBe(id)
    const usual = await headersOf(gateway, 'agent')
    const start = JSON.stringify({ ...initialize(), id: undefined }).replace('{', `{"id":${id},`)
    expect(echoed(await send(gateway.mcpUrl, { headers: usual, body: start }))).toBe(id)
  })
})

it('answers a method that it does not have as such, in a session', async () => {
  for (const method of ['nothing/like-this', 'server/discover', 'tasks/list', '']) {
    const reply = await session.request(method)
    expect(reply.status, method).toBe(200)
    expect(reply.error, method).toMatchObject({ code: -32601 })
  }
})

it('survives garbage on the socket', async () => {
  const { hostname, port } = new URL(gateway.url)
  const garbage = [
    '\u0000\u0001\u0002\r\n\r\n',
    'GET\r\n\r\n',
    'POST /mcp HTTP/9.9\r\n\r\n',
    `POST /mcp HTTP/1.1\r\nHost: localhost:${port}\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello`,
    `POST /mcp HTTP/1.1\r\nHost: localhost:${port}\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    `POST /mcp HTTP/1.1\r\nHost: localhost:${port}\r\nContent-Length: -1\r\n\r\n`,
    `CONNECT evil.example:443 HTTP/1.1\r\nHost: localhost:${port}\r\n\r\n`,
    '\u0016\u0003\u0001\u0002\u0000\u0001\u0000',
  ]
  for (const bytes of garbage) {
    const answer = await new Promise<string>((resolve) => {
      const socket = connect(Number(port), hostname)
      let text = ''
      socket.on('data', (chunk) => {
        text += chunk
      })
      socket.on('error', () => {})
      socket.on('close', () => resolve(text))
      socket.end(bytes, 'latin1')
    })
    expect(answer, JSON.stringify(bytes)).not.toMatch(/^HTTP\/1\.1 2/)
  }
  await expectAlive()
})

it('tells of a failure in the stateless era with the id that the request had', async () => {
  const reply = await ask(gateway, 'tools/call', { name: 'nowhere', arguments: {} }, { id: 'lost' })
  expect(reply.message).toMatchObject({ id: 'lost', error: { code: -32602, data: { code: 'tool-not-found' } } })
})

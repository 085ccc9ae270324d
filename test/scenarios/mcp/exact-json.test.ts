import { beforeAll, describe, expect, it } from 'vitest'
import { readRecord } from '../../fixtures/fixtures.ts'
import { startTestGateway, type TestGateway } from '../../support/gateway.ts'
import {
  headersOf,
  modernRequest,
  openSession,
  type Reply,
  recordedCalls,
  recordingAt,
  send,
  temporaryFolder,
} from './raw.ts'
import { startScriptedServer } from './scripted-server.ts'

const rules = [
  { tools: '*', action: 'allow' as const },
  { tools: 'rec_write_thing', arguments: { '/amount': { min: 100 } }, action: 'deny' as const },
]

let gateway: TestGateway
let file: string
beforeAll(async () => {
  const folder = await temporaryFolder()
  const recording = recordingAt(folder.path)
  file = recording.file
  gateway = await startTestGateway({ servers: { rec: recording.server }, rules })
  return async () => {
    await gateway.close()
    await folder[Symbol.asyncDispose]()
  }
})

/** A call with arguments that are written byte by byte, on one of the ways in. */
type Way = (given: string | Buffer, meta?: string) => Promise<Reply>

const around = (before: string, given: string | Buffer, after: string) =>
  Buffer.concat([Buffer.from(before), Buffer.from(given), Buffer.from(after)])

const protocol =
  '"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}'

const ways: readonly [string, Way][] = [
  [
    'with a session',
    async (given, meta = '') => {
      const session = await openSession(gateway)
      const headers = { ...(await headersOf(gateway, 'agent')), 'mcp-session-id': session.id }
      const start = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"rec_write_thing","arguments":'
      return send(gateway.mcpUrl, { headers, body: around(start, given, `,"_meta":{${meta}}}}`) })
    },
  ],
  [
    'without a session',
    async (given, meta) => {
      const { headers } = await modernRequest(gateway, 'tools/call', { name: 'rec_write_thing' })
      const start = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"rec_write_thing","arguments":'
      const end = `,"_meta":{${protocol}${meta === undefined ? '' : `,${meta}`}}}}`
      return send(gateway.mcpUrl, { headers, body: around(start, given, end) })
    },
  ],
  [
    'over REST',
    async (given, meta) => {
      const headers = await headersOf(gateway, 'agent')
      const more = meta === undefined ? '' : `,"_meta":{${meta}}`
      const body = around('{"arguments":', given, `${more}}`)
      return send(gateway.url, { path: '/api/tools/rec_write_thing/call', headers, body })
    },
  ],
]

const codeOf = ({ message, error }: Reply) => Object(Object(message.error).data).code ?? error.code

describe.each(ways)('a caller %s', (_way, call) => {
  it.each([
    ['a number beyond every double', '{"amount":1e400}'],
    ['a negative number beyond every double', '{"amount":-1e999999999999999999}'],
    ['an integer that no double holds', '{"id":9007199254740993}'],
    ['a long integer', '{"id":123456789012345678901234567890}'],
    ['a number that would become zero', '{"amount":1e-400}'],
    ['more digits than a double has', '{"amount":0.12345678901234567890}'],
    ['such a number deep inside', '{"a":[{"b":[[1,9007199254740993]]}]}'],
    ['__proto__', '{"__proto__":{"admin":true}}'],
    ['__proto__ deep inside', '{"a":[{"__proto__":1}]}'],
    ['__proto__ in other letters', '{"a":{"\\u005f_proto__":1}}'],
    ['a key twice', '{"path":"/tmp","path":"/etc"}'],
    ['a key twice in other letters', '{"path":"/tmp","p\\u0061th":"/etc"}'],
    ['a key twice deep inside', '{"a":[{"b":1,"b":1}]}'],
    ['half of a surrogate pair', '{"text":"\\ud83d"}'],
    ['half of a surrogate pair in a key', '{"\\udc00":1}'],
  ])('is told that %s cannot be sent as it is, and nothing is', async (_what, given) => {
    const before = (await readRecord(file)).length
    const reply = await call(given)
    expect(codeOf(reply)).toBe('json-inexact')
    expect(reply.text).toContain('Send other numbers as text')
    expect(await readRecord(file)).toHaveLength(before)
  })

  it('is refused with bytes that are not UTF-8, and with a byte order mark', async () => {
    const before = (await readRecord(file)).length
    const bad = await call(Buffer.concat([Buffer.from('{"text":"'), Buffer.from([0xff, 0xc0]), Buffer.from('"}')]))
    expect(codeOf(bad)).toBe('json-inexact')
    expect((await call('\ufeff{"text":"x"}')).status).toBe(400)
    expect(await readRecord(file)).toHaveLength(before)
  })

  it.each([
    ['0.1', 0.1],
    ['1.10', 1.1],
    ['5e1', 50],
    ['-0', 0],
    ['1E+1', 10],
    ['99.000000000000000000000', 99],
    ['-9007199254740992', -9007199254740992],
    ['-1.7976931348623157e308', -Number.MAX_VALUE],
    ['5e-324', Number.MIN_VALUE],
    ['0.30000000000000004', 0.30000000000000004],
    ['0e999', 0],
  ])('sends %s as that number', async (word, number) => {
    const reply = await call(`{"amount":${word}}`)
    expect(reply.status).toBe(200)
    expect((await readRecord(file)).at(-1)?.arguments).toEqual({ amount: number })
  })

  it('sends odd keys and text as they are', async () => {
    const given = '{"constructor":{"prototype":1},"toString":"\\ud83d\\ude00","":{"hasOwnProperty":"\\u0000\\u2028"}}'
    expect((await call(given)).status).toBe(200)
    expect(JSON.stringify((await readRecord(file)).at(-1)?.arguments)).toBe(JSON.stringify(JSON.parse(given)))
  })
})

describe.each(ways.slice(0, 2))('`_meta` of a caller %s', (_way, call) => {
  it.each(['"mine":1e400', '"mine":{"__proto__":1}', '"mine":1,"mine":2', '"mine":"\\ud800"'])(
    'is refused like arguments: %s',
    async (meta) => {
      const before = (await readRecord(file)).length
      expect(codeOf(await call('{}', meta))).toBe('json-inexact')
      expect(await readRecord(file)).toHaveLength(before)
    },
  )
})

it('a caller over REST cannot choose the surface that is recorded', async () => {
  const headers = { ...(await headersOf(gateway, 'agent')), 'x-sallyport-surface': 'cli' }
  const reply = await send(gateway.url, { path: '/api/tools/rec_read_thing/call', headers, body: '{"surface":"mcp"}' })
  expect(reply.status).toBe(400)
  await send(gateway.url, { path: '/api/tools/rec_read_thing/call', headers, body: '{"arguments":{"from":"rest"}}' })
  const { items } = await gateway.gateway.calls.list({ limit: 10, tool: 'rec_read_thing' })
  expect(items.map(({ surface }) => surface)).toEqual(['http'])
})

it('a result over REST has every byte of what the server wrote', async () => {
  const result = '{ "content": [],"structuredContent":{"id":9007199254740993,"__proto__":{"x":1e400},"n":1.10} }'
  await using server = await startScriptedServer(({ id, response }) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}`)
  })
  await using test = await startTestGateway({ servers: { web: { transport: 'http', url: server.url } } })
  const headers = await headersOf(test, 'agent')
  const reply = await send(test.url, { path: '/api/tools/web_talk/call', headers, body: '{"arguments":{}}' })
  expect(reply.status).toBe(200)
  expect(reply.text.slice(reply.text.indexOf('"result":') + '"result":'.length, -1)).toBe(result)
})

it('an answer with a key twice, which the agent could read in another way than the gateway, is not passed on', async () => {
  const results = [
    '{"content":[],"isError":true,"isError":false}',
    '{"content":[],"isError":false,"isErr\\u006fr":true}',
    '{"resultType":"complete","content":[],"resultType":"input_required","inputRequests":{},"requestState":"x"}',
    '{"content":[],"structuredContent":{},"structuredContent":{"x":1}}',
  ]
  const exact = '{"content":[],"structuredContent":{"a":1,"a":2,"__proto__":1e400}}'
  let result = exact
  await using server = await startScriptedServer(({ id, response }) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}`)
  })
  await using test = await startTestGateway({ servers: { web: { transport: 'http', url: server.url } } })
  const session = await openSession(test)
  expect((await session.call('web_talk')).text).toContain(exact)
  for (result of results) expect((await session.call('web_talk')).text).toContain('server-broken')
  expect((await recordedCalls(test)).map(({ state }) => state)).toEqual(['ok', ...results.map(() => 'failed')])
})

import { beforeAll, describe, expect, it } from 'vitest'
import { readRecord } from '../../fixtures/fixtures.ts'
import { startTestGateway, type TestGateway } from '../../support/gateway.ts'
import {
  allowAll,
  ask,
  envelope,
  metaKey,
  modernRequest,
  modernVersion,
  namesIn,
  offeredCapabilities,
  recordingAt,
  send,
  startRecordingGateway,
  textOf,
} from './raw.ts'

let gateway: TestGateway
let record: string
let folder: string

beforeAll(async () => {
  const started = await startRecordingGateway({ rules: allowAll })
  ;({ gateway, record, folder } = started)
  return started.close
})

const call = { name: 'rec_echo', arguments: { text: 'x' } }
const toRecorded = ({ name, arguments: given }: typeof call) => ({ tool: name, arguments: given })

describe('headers and body that disagree are refused, and nothing is sent', () => {
  it.each<[string, string, object, Record<string, string | undefined>]>([
    ['no version in the header', 'tools/list', {}, { 'mcp-protocol-version': undefined }],
    ['another version in the header', 'tools/list', {}, { 'mcp-protocol-version': '2025-11-25' }],
    ['the version twice', 'tools/list', {}, { 'mcp-protocol-version': `${modernVersion}, ${modernVersion}` }],
    ['no method in the header', 'tools/call', call, { 'mcp-method': undefined }],
    ['another method in the header', 'tools/call', call, { 'mcp-method': 'tools/list' }],
    ['the method in capitals', 'tools/call', call, { 'mcp-method': 'Tools/Call' }],
    ['no name in the header', 'tools/call', call, { 'mcp-name': undefined }],
    ['another name in the header', 'tools/call', call, { 'mcp-name': 'rec_read_thing' }],
    ['an empty name in the header', 'tools/call', call, { 'mcp-name': '' }],
    ['another name in base 64', 'tools/call', call, { 'mcp-name': base64('rec_read_thing') }],
    ['broken base 64', 'tools/call', call, { 'mcp-name': '=?base64?%%?=' }],
    ['a name where none belongs', 'tools/list', {}, { 'mcp-name': 'rec_echo' }],
  ])('%s', async (_, method, params, headers) => {
    const before = (await readRecord(record)).length
    const reply = await ask(gateway, method, { ...params }, { headers, id: 'abc' })
    expect(reply.status).toBe(400)
    expect(reply.message).toMatchObject({ id: 'abc', error: { code: -32020, data: { code: 'header-mismatch' } } })
    expect(await readRecord(record)).toHaveLength(before)
    if (method !== 'tools/call') return
    const { items } = await gateway.gateway.calls.list({ limit: 1 })
    expect(items[0]).toMatchObject({ ...toRecorded(call), state: 'denied', error: { code: 'header-mismatch' } })
    expect((await gateway.gateway.audit.list({ limit: 1 })).items[0]?.call).toBe(items[0]?.id)
  })

  it('but a name that is safe only in base 64, or merely written so, is understood', async () => {
    const plain = await ask(gateway, 'tools/call', call, { headers: { 'mcp-name': base64('rec_echo') } })
    expect(textOf(plain.result)).toBe('x')
    const name = 'größe ☂'
    const odd = await ask(gateway, 'tools/call', { name, arguments: {} }, { headers: { 'mcp-name': base64(name) } })
    expect(odd.status).toBe(200)
    expect(odd.error).toMatchObject({ code: -32602, message: expect.stringContaining(name) })
    const raw = Buffer.from(name).toString('latin1')
    const spelt = await ask(gateway, 'tools/call', { name, arguments: {} }, { headers: { 'mcp-name': raw } })
    expect(spelt.error).toMatchObject({ code: -32020 })
  })
})

describe('the envelope', () => {
  it.each<[string, Record<string, unknown>]>([
    ['is missing', {}],
    ['has no version', { [metaKey('clientCapabilities')]: {} }],
    ['has no capabilities', { [metaKey('protocolVersion')]: modernVersion }],
    ['has capabilities that are no object', { ...envelope(), [metaKey('clientCapabilities')]: [] }],
    ['has a version that is no text', { ...envelope(), [metaKey('protocolVersion')]: 20260728 }],
  ])('that %s is an error', async (_, meta) => {
    const before = (await readRecord(record)).length
    const reply = await ask(gateway, 'tools/call', call, { meta })
    expect(reply.status).toBe(400)
    expect(reply.error.code).toEqual(expect.any(Number))
    expect(await readRecord(record)).toHaveLength(before)
  })

  it('may leave out who the client is, and may say more than anybody knows', async () => {
    const { [metaKey('clientInfo')]: _, ...anonymous } = envelope()
    expect((await ask(gateway, 'tools/list', {}, { meta: anonymous })).status).toBe(200)
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
    const more = { ...envelope(), [metaKey('future')]: { a: 1 }, 'example.com/own': 'kept', traceparent }
    expect(textOf((await ask(gateway, 'tools/call', call, { meta: more })).result)).toBe('x')
    const received = (await readRecord(record)).at(-1)
    expect(received?.meta).toMatchObject({ 'example.com/own': 'kept', traceparent })
    expect(Object.keys(received?.meta ?? {}).filter((key) => key.startsWith('io.modelcontextprotocol/'))).toEqual([])
  })
})

describe('a revision that nobody speaks', () => {
  it.each(['2027-01-01', '1.0', 'DRAFT-2026'])('%s is refused with the ones that are', async (version) => {
    const meta = { ...envelope(), [metaKey('protocolVersion')]: version }
    const reply = await ask(gateway, 'tools/list', {}, { meta, headers: { 'mcp-protocol-version': version } })
    expect(reply.status).toBe(400)
    expect(reply.error).toMatchObject({ code: -32022, data: { supported: [modernVersion], requested: version } })
  })

  it('is refused in the header alone as well', async () => {
    const reply = await ask(gateway, 'tools/list', {}, { meta: {}, headers: { 'mcp-protocol-version': '2027-01-01' } })
    expect(reply.status).toBe(400)
    expect(reply.error).toMatchObject({
      code: -32022,
      data: { supported: expect.arrayContaining(['2025-11-25']), requested: '2027-01-01' },
    })
  })
})

it.each(['nothing/like-this', 'ping', 'initialize', 'logging/setLevel', 'resources/subscribe', 'constructor', ''])(
  'answers the method %j, which this revision or this gateway does not have, with 404',
  async (method) => {
    const reply = await ask(gateway, method)
    expect(reply.status).toBe(404)
    expect(reply.message).toMatchObject({ jsonrpc: '2.0', id: 1, error: { code: -32601 } })
  },
)

it('tells in `server/discover` what it speaks and offers', async () => {
  const reply = await ask(gateway, 'server/discover')
  expect(reply.status).toBe(200)
  expect(reply.headers['content-type']).toBe('application/json')
  expect(reply.headers['mcp-session-id']).toBeUndefined()
  expect(reply.result).toEqual({
    resultType: 'complete',
    supportedVersions: [modernVersion],
    capabilities: offeredCapabilities,
    ttlMs: expect.any(Number),
    cacheScope: 'private',
    instructions: expect.stringContaining('no administrator yet'),
    _meta: {
      [metaKey('serverInfo')]: { name: 'sallyport', title: 'Sallyport', version: gateway.gateway.version },
    },
  })
})

it('marks every result as complete, and lists as private to their caller', async () => {
  const list = await ask(gateway, 'tools/list')
  expect(list.result).toMatchObject({ resultType: 'complete', ttlMs: expect.any(Number), cacheScope: 'private' })
  const calls = [
    call,
    { name: 'rec_fail' },
    { name: 'rec_structured' },
    { name: 'rec_big', arguments: { bytes: 400_000 } },
    { name: 'rec_progress', arguments: { steps: 1 } },
  ]
  for (const params of calls) {
    const { result } = await ask(gateway, 'tools/call', params)
    expect(result, params.name).toMatchObject({ resultType: 'complete', content: expect.any(Array) })
  }
  const meta = { ...envelope(), progressToken: 'mine' }
  const streamed = await ask(gateway, 'tools/call', { name: 'rec_progress', arguments: { steps: 2 } }, { meta })
  expect(streamed.headers['content-type']).toBe('text/event-stream')
  expect(streamed.result).toMatchObject({ resultType: 'complete' })
  const heard = streamed.messages.slice(0, -1)
  expect(heard).toEqual(
    [1, 2].map((progress) => ({
      jsonrpc: '2.0',
      method: 'notifications/progress',
      params: { progress, total: 2, progressToken: 'mine' },
    })),
  )
})

it('says what the gateway has to say instead of a tool as a result too', async () => {
  await using strict = await startTestGateway({
    servers: { rec: recordingAt(folder, 'strict').server },
    rules: [{ tools: '*', action: 'deny', name: 'nothing today' }],
  })
  const { result } = await ask(strict, 'tools/call', call)
  expect(result).toMatchObject({ resultType: 'complete', isError: true })
  expect(textOf(result)).toContain('call-denied')
})

it('answers in JSON to a client that takes nothing else, and leaves progress out', async () => {
  const meta = { ...envelope(), progressToken: 1 }
  const params = { name: 'rec_progress', arguments: { steps: 2 } }
  const reply = await ask(gateway, 'tools/call', params, { meta, headers: { accept: 'application/json' } })
  expect(reply.headers['content-type']).toBe('application/json')
  expect(textOf(reply.result)).toBe('2 steps')
})

it('takes every notification with 202 and an empty body', async () => {
  for (const method of ['notifications/cancelled', 'notifications/whatever', 'notifications/initialized']) {
    const { headers } = await modernRequest(gateway, method)
    const body = JSON.stringify({ jsonrpc: '2.0', method, params: { requestId: 1, _meta: envelope() } })
    const reply = await send(gateway.mcpUrl, { headers, body })
    expect(reply.status).toBe(202)
    expect(reply.text).toBe('')
  }
})

it('has no standing stream and no session to end', async () => {
  const { headers } = await modernRequest(gateway, 'tools/list')
  const stream = await send(gateway.mcpUrl, { method: 'GET', headers: { ...headers, accept: 'text/event-stream' } })
  expect(stream.status).toBe(405)
  expect(stream.headers.allow).toContain('POST')
  const ending = await send(gateway.mcpUrl, { method: 'DELETE', headers })
  expect(ending.status).toBe(400)
  const other = await send(gateway.mcpUrl, { method: 'PUT', headers, body: '{}' })
  expect(other.status).toBe(405)
  expect(other.headers.allow).toBe('POST, GET, DELETE')
})

it('needs no session, and one that is named changes nothing', async () => {
  const reply = await ask(gateway, 'tools/list', {}, { headers: { 'mcp-session-id': 'anything' } })
  expect(reply.status).toBe(200)
  expect(namesIn(reply.result)).toContain('rec_echo')
})

function base64(text: string): string {
  return `=?base64?${Buffer.from(text).toString('base64')}?=`
}

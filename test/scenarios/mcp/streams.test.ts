import { type ClientRequest, type IncomingMessage, request as openRequest } from 'node:http'
import { connect, type Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { stdioFixture } from '../../fixtures/fixtures.ts'
import { isFields, parseJson } from '../../fixtures/lib/json-rpc.ts'
import { poll, quickSupervision, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { createMovableClock } from './clock.ts'
import {
  ask,
  envelope,
  eventsIn,
  headersOf,
  metaKey,
  modernRequest,
  open,
  openSession,
  type Reply,
  readStream,
  textOf,
} from './raw.ts'
import { type ScriptedCall, startScriptedServer } from './scripted-server.ts'

type Stream = {
  request: ClientRequest
  response: IncomingMessage
  text(): string
  messages(): Record<string, unknown>[]
  ended: Promise<void>
}

async function stream(gateway: TestGateway, method: string, params: object, id: string | number = 1): Promise<Stream> {
  const { headers, body } = await modernRequest(gateway, method, { ...params }, { id })
  const request = open(gateway.mcpUrl, { headers })
  request.end(body)
  const { response, text, ended } = await readStream(request)
  return { request, response, text, messages: () => eventsIn(text()).map(parseJson).filter(isFields), ended }
}

const listen = (gateway: TestGateway, id: string | number = 1) =>
  stream(gateway, 'subscriptions/listen', { notifications: { toolsListChanged: true } }, id)

describe('a subscription', () => {
  it('is acknowledged with what it will tell, and marks all that it tells with its id', async () => {
    await using gateway = await startTestGateway({ servers: { rec: stdioFixture('recording') } })
    const subscription = await listen(gateway, 'sub-1')
    const tag = { _meta: { [metaKey('subscriptionId')]: 'sub-1' } }
    await poll(() => subscription.messages().length === 1 || undefined)
    expect(subscription.messages()[0]).toEqual({
      jsonrpc: '2.0',
      method: 'notifications/subscriptions/acknowledged',
      params: { notifications: { toolsListChanged: true }, ...tag },
    })
    await ask(gateway, 'tools/call', { name: 'rec_change_list', arguments: { name: 'fresh' } })
    await poll(() => subscription.messages().length === 2 || undefined)
    expect(subscription.messages()[1]).toEqual({
      jsonrpc: '2.0',
      method: 'notifications/tools/list_changed',
      params: tag,
    })
    subscription.request.destroy()
  })

  it('to what this gateway does not tell is acknowledged as such', async () => {
    await using gateway = await startTestGateway({})
    for (const notifications of [{ promptsListChanged: true }, { toolsListChanged: 'yes' }, {}, undefined]) {
      const subscription = await stream(gateway, 'subscriptions/listen', { notifications })
      await poll(() => subscription.messages().length === 1 || undefined)
      expect(subscription.messages()[0]).toMatchObject({ params: { notifications: {} } })
      subscription.request.destroy()
    }
  })

  it('lasts through hours of silence, kept alive, and still tells a change afterwards', async () => {
    const clock = createMovableClock()
    const supervision = { ...quickSupervision, idleMs: 24 * 3_600_000 }
    const servers = { rec: stdioFixture('recording') }
    await using gateway = await startTestGateway({ servers }, { clock, supervision })
    const subscription = await listen(gateway)
    for (const milliseconds of [11_000, 16_000, 16_000, 7_200_000]) {
      const before = subscription.text().split(': keep-alive').length
      clock.advance(milliseconds)
      clock.advance(15_001)
      await poll(() => subscription.text().split(': keep-alive').length > before || undefined)
    }
    await ask(gateway, 'tools/call', { name: 'rec_change_list', arguments: { name: 'late' } })
    await poll(() => subscription.text().includes('notifications/tools/list_changed') || undefined)
    subscription.request.destroy()
  })

  it('that its client left is forgotten', async () => {
    await using gateway = await startTestGateway({ servers: { rec: stdioFixture('recording') } })
    for (let round = 0; round < 20; round++) {
      const subscription = await listen(gateway, round)
      subscription.request.destroy()
      await subscription.ended
    }
    const last = await listen(gateway, 'last')
    await ask(gateway, 'tools/call', { name: 'rec_change_list', arguments: { name: 'fresh' } })
    await poll(() => last.text().includes('notifications/tools/list_changed') || undefined)
    last.request.destroy()
  })
})

describe('a call that takes long', () => {
  /** Asks, lets eleven seconds pass while the server works, then lets it answer. */
  async function askPatiently(accept: string): Promise<Reply> {
    const clock = createMovableClock()
    const asked = Promise.withResolvers<ScriptedCall>()
    await using server = await startScriptedServer((call) => asked.resolve(call))
    await using gateway = await startTestGateway(
      { servers: { web: { transport: 'http', url: server.url } } },
      { clock },
    )
    const reply = ask(gateway, 'tools/call', { name: 'web_talk', arguments: {} }, { headers: { accept } })
    const { id, response } = await asked.promise
    clock.advance(11_000)
    const result = { content: [{ type: 'text', text: 'at last' }] }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, result }))
    return await reply
  }

  it('keeps its connection alive with events, and answers in one of them', async () => {
    const reply = await askPatiently('application/json, text/event-stream')
    expect(reply.headers['content-type']).toBe('text/event-stream')
    expect(reply.text).toContain(': keep-alive')
    expect(textOf(reply.result)).toBe('at last')
  })

  it('answers a client that takes only JSON in JSON, however long it takes', async () => {
    const reply = await askPatiently('application/json')
    expect(reply.headers['content-type']).toBe('application/json')
    expect(textOf(reply.result)).toBe('at last')
  })
})

describe('a body that comes slowly', () => {
  it('gets the status that belongs to it, not a stream that was opened meanwhile', async () => {
    const clock = createMovableClock()
    await using gateway = await startTestGateway({}, { clock })
    const headers = await headersOf(gateway, 'agent', { 'mcp-session-id': 'unknown', 'transfer-encoding': 'chunked' })
    const request = open(gateway.mcpUrl, { headers })
    const answered = new Promise<IncomingMessage>((resolve) => request.on('response', resolve))
    const [first, second] = ['{"jsonrpc":"2.0","id":1,', '"method":"tools/list"}']
    request.write(first)
    await ask(gateway, 'tools/list')
    clock.advance(11_000)
    request.end(second)
    const response = await answered
    response.resume()
    expect(response.statusCode).toBe(404)
  })

  it('or never, like headers that never end, keeps nobody else waiting', async () => {
    await using gateway = await startTestGateway({ servers: { rec: stdioFixture('recording') } })
    const { hostname, port, host } = new URL(gateway.url)
    const token = await gateway.token('agent')
    const half = [
      `POST /mcp HTTP/1.1\r\nHost: ${host}\r\nX-Slow: `,
      `POST /mcp HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"jsonrpc"`,
      'P',
    ]
    const sockets: Socket[] = []
    for (let index = 0; index < 300; index++) {
      const socket = connect(Number(port), hostname)
      socket.on('error', () => {})
      await new Promise((resolve) => socket.on('connect', resolve))
      socket.write(half[index % half.length] ?? '')
      sockets.push(socket)
    }
    const texts = Array.from({ length: 50 }, (_, index) => `healthy ${index}`)
    const replies = await Promise.all(
      texts.map((text) => ask(gateway, 'tools/call', { name: 'rec_echo', arguments: { text } })),
    )
    expect(replies.map(({ result }) => textOf(result))).toEqual(texts)
    for (const socket of sockets) socket.destroy()
  })
})

describe('a client that does not read', () => {
  it('loses progress instead of filling the memory, and still gets its answer', async () => {
    const steps = 800
    const message = 'x'.repeat(64 * 1024)
    await using server = await startScriptedServer(async ({ id, progressToken, response }) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      for (let progress = 1; progress <= steps; progress++) {
        const params = { progressToken, progress, total: steps, message }
        const event = { jsonrpc: '2.0', method: 'notifications/progress', params }
        const hasRoom = response.write(`data: ${JSON.stringify(event)}\n\n`)
        if (!hasRoom) await new Promise((resolve) => response.once('drain', resolve))
        await turn()
      }
      const result = { content: [{ type: 'text', text: 'done' }] }
      response.end(`data: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`)
    })
    await using gateway = await startTestGateway({ servers: { web: { transport: 'http', url: server.url } } })
    const meta = { ...envelope(), progressToken: 'mine' }
    const { headers, body } = await modernRequest(gateway, 'tools/call', { name: 'web_talk', arguments: {} }, { meta })
    const request = openRequest(gateway.mcpUrl, { method: 'POST', headers, agent: false })
    request.end(body)
    const response = await new Promise<IncomingMessage>((resolve) => request.on('response', resolve))
    response.pause()
    await poll(
      async () => (await gateway.gateway.calls.list({ limit: 1 })).items[0]?.state === 'ok' || undefined,
      30_000,
    )
    const chunks: Buffer[] = []
    response.on('data', (chunk: Buffer) => chunks.push(chunk))
    const whole = new Promise((resolve) => response.on('end', resolve))
    response.resume()
    await whole
    const received = Buffer.concat(chunks)
    expect(received.length).toBeLessThan((steps * message.length) / 2)
    const last = eventsIn(received.toString('utf8')).at(-1) ?? ''
    expect(textOf(Object(parseJson(last)).result)).toBe('done')
  })

  it('keeps nobody else waiting', async () => {
    await using gateway = await startTestGateway({
      servers: { rec: stdioFixture('recording') },
      limits: { result: 4_000_000 },
    })
    const stuck = await Promise.all(
      Array.from({ length: 20 }, async (_, index) => {
        const params = { name: 'rec_big', arguments: { bytes: 3_000_000 } }
        const { headers, body } = await modernRequest(gateway, 'tools/call', params, { id: index })
        const request = openRequest(gateway.mcpUrl, { method: 'POST', headers, agent: false })
        request.on('error', () => {})
        request.end(body)
        const response = await new Promise<IncomingMessage>((resolve) => request.on('response', resolve))
        response.pause()
        return request
      }),
    )
    for (let round = 0; round < 20; round++) {
      const text = `round ${round}`
      const reply = await ask(gateway, 'tools/call', { name: 'rec_echo', arguments: { text } })
      expect(textOf(reply.result)).toBe(text)
    }
    for (const request of stuck) request.destroy()
  })
})

it('keeps what a server wrote in several lines in one event, with every digit', async () => {
  await using server = await startScriptedServer(({ id, progressToken, response }) => {
    const progress = { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken, progress: 1 } }
    const lines = [
      `{ "jsonrpc": "2.0", "id": ${id},`,
      '  "result": {',
      '    "content": [{ "type": "text", "text": "two\\nlines" }],',
      '    "structuredContent": { "exact": 12345678901234567890.10 }',
      '  }}',
    ]
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(`data: ${JSON.stringify(progress)}\n\n`)
    response.end(`${lines.map((line) => `data: ${line}`).join('\r\n')}\n\n`)
  })
  await using gateway = await startTestGateway({ servers: { web: { transport: 'http', url: server.url } } })
  const session = await openSession(gateway)
  const params = { name: 'web_talk', arguments: {}, _meta: { progressToken: 'p' } }
  const body = `{"jsonrpc":"2.0","id":98765432109876543210,"method":"tools/call","params":${JSON.stringify(params)}}`
  const reply = await session.post(body)
  expect(reply.headers['content-type']).toBe('text/event-stream')
  const events = eventsIn(reply.text)
  expect(events).toHaveLength(2)
  expect(events[1]).toContain('"id":98765432109876543210')
  expect(events[1]).toContain('12345678901234567890.10')
  expect(textOf(reply.result)).toBe('two\nlines')
})

import { Agent } from 'node:http'
import { beforeAll, describe, expect, it } from 'vitest'
import { readCancellations, readRecord } from '../../fixtures/fixtures.ts'
import { poll, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { createMovableClock } from './clock.ts'
import {
  allowAll,
  ask,
  eventsIn,
  headersOf,
  initialize,
  legacyVersion,
  namesIn,
  offeredCapabilities,
  open,
  openSession,
  openStream,
  type RawSession,
  recordedCalls,
  recordingAt,
  type Stream,
  send,
  startRecordingGateway,
  textOf,
} from './raw.ts'

let gateway: TestGateway
let record: string
let folder: string

beforeAll(async () => {
  const started = await startRecordingGateway({ rules: allowAll, toolsets: { all: {} } })
  ;({ gateway, record, folder } = started)
  return started.close
})

async function findRecorded(text: string) {
  return poll(async () => (await readRecord(record)).find((entry) => entry.arguments?.text === text))
}

async function findEnded(text: string) {
  return poll(async () =>
    (await recordedCalls(gateway)).find((call) => JSON.stringify(call.arguments).includes(text) && call.endedAt),
  )
}

describe('a session', () => {
  it.each([
    ['2024-11-05', '2024-11-05'],
    ['2025-03-26', '2025-03-26'],
    ['2025-06-18', '2025-06-18'],
    ['2025-11-25', '2025-11-25'],
    ['1999-01-01', legacyVersion],
  ])('asked for in revision %s speaks %s', async (wanted, agreed) => {
    const reply = await send(gateway.mcpUrl, {
      headers: await headersOf(gateway, 'agent'),
      body: JSON.stringify(initialize(1, wanted)),
    })
    expect(reply.status).toBe(200)
    expect(reply.result).toEqual({
      protocolVersion: agreed,
      capabilities: offeredCapabilities,
      serverInfo: { name: 'sallyport', title: 'Sallyport', version: gateway.gateway.version },
      instructions: expect.stringContaining('no administrator yet'),
    })
    expect(reply.headers['mcp-session-id']).toMatch(/^[\x21-\x7e]{20,}$/)
  })

  it('must be named in every request', async () => {
    const headers = await headersOf(gateway, 'agent')
    for (const method of ['tools/list', 'tools/call', 'ping', 'nothing/like-this']) {
      const reply = await send(gateway.mcpUrl, { headers, body: JSON.stringify({ jsonrpc: '2.0', id: 5, method }) })
      expect(reply.status, method).toBe(400)
      expect(reply.message, method).toMatchObject({ id: 5, error: { message: expect.stringContaining('initialize') } })
    }
    const notification = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' })
    expect((await send(gateway.mcpUrl, { headers, body: notification })).status).toBe(400)
    expect((await send(gateway.mcpUrl, { method: 'DELETE', headers })).status).toBe(400)
    expect((await send(gateway.mcpUrl, { method: 'GET', headers })).status).toBe(405)
  })

  it('that nobody opened is not found', async () => {
    const { id } = await openSession(gateway)
    for (const unknown of ['x', '__proto__', `${id}x`, id.slice(0, -1), `${id}, ${id}`]) {
      const headers = await headersOf(gateway, 'agent', { 'mcp-session-id': unknown, accept: 'text/event-stream' })
      const body = JSON.stringify({ jsonrpc: '2.0', id: 5, method: 'tools/list' })
      const reply = await send(gateway.mcpUrl, { headers, body })
      expect(reply.status, unknown).toBe(404)
      expect(reply.message, unknown).toMatchObject({ id: 5, error: { code: -32001 } })
      expect((await send(gateway.mcpUrl, { method: 'GET', headers })).status, unknown).toBe(404)
      expect((await send(gateway.mcpUrl, { method: 'DELETE', headers })).status, unknown).toBe(404)
    }
  })

  it('of somebody else is as good as none, and its owner notices nothing', async () => {
    const mine = await openSession(gateway, { agent: 'owner' })
    const call = mine.call('rec_echo', { text: 'owner at work', delayMs: 600 }, 1)
    await findRecorded('owner at work')
    const thief = await headersOf(gateway, 'thief', { 'mcp-session-id': mine.id, accept: 'text/event-stream' })
    const attempts = [
      { jsonrpc: '2.0', id: 1, method: 'tools/list' },
      { jsonrpc: '2.0', id: 2, method: 'tools/call', params: { name: 'rec_echo', arguments: { text: 'stolen' } } },
      { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } },
    ]
    for (const attempt of attempts) {
      expect((await send(gateway.mcpUrl, { headers: thief, body: JSON.stringify(attempt) })).status).toBe(404)
    }
    expect((await send(gateway.mcpUrl, { method: 'GET', headers: thief })).status).toBe(404)
    expect((await send(gateway.mcpUrl, { method: 'DELETE', headers: thief })).status).toBe(404)
    expect(textOf((await call).result)).toBe('owner at work')
    expect((await mine.request('tools/list')).status).toBe(200)
    expect((await readRecord(record)).some((entry) => entry.arguments?.text === 'stolen')).toBe(false)
  })

  it('counts at the address where it was opened and at no other', async () => {
    const session = await openSession(gateway, { path: '/mcp/t/all' })
    const headers = await headersOf(gateway, 'agent', { 'mcp-session-id': session.id })
    const body = JSON.stringify({ jsonrpc: '2.0', id: 5, method: 'tools/list' })
    expect((await send(`${gateway.url}/mcp/t/all`, { headers, body })).status).toBe(200)
    for (const path of ['/mcp', '/mcp/s/rec']) {
      expect((await send(`${gateway.url}${path}`, { headers, body })).status, path).toBe(404)
    }
  })

  it('is over after DELETE: its stream, its calls and its id', async () => {
    const session = await openSession(gateway)
    const stream = await openStream(gateway, session.id)
    const call = session.call('rec_echo', { text: 'left behind', delayMs: 60_000 })
    const { id } = await findRecorded('left behind')
    expect((await session.end()).status).toBe(204)
    await stream.ended
    await call
    await poll(async () => (await readCancellations(record)).find(({ cancelled }) => cancelled === id))
    expect((await findEnded('left behind')).state).toBe('cancelled')
    expect((await session.request('tools/list')).status).toBe(404)
    expect((await session.end()).status).toBe(404)
  })

  it('keeps the calls of its client apart: an id under way is not taken twice', async () => {
    const session = await openSession(gateway)
    const first = session.call('rec_echo', { text: 'the first', delayMs: 60_000 }, 9)
    await findRecorded('the first')
    const second = await session.call('rec_echo', { text: 'the second' }, 9)
    expect(second.error).toMatchObject({ code: -32600, message: expect.stringContaining('still running') })
    await session.post({ method: 'notifications/cancelled', params: { requestId: 9 } })
    await first
    expect(textOf((await session.call('rec_echo', { text: 'the third' }, 9)).result)).toBe('the third')
  })

  it('lets a call go on when its client merely hangs up', async () => {
    const session = await openSession(gateway)
    const headers = await headersOf(gateway, 'agent', { 'mcp-session-id': session.id })
    const request = open(gateway.mcpUrl, { headers })
    request.on('error', () => {})
    const params = { name: 'rec_echo', arguments: { text: 'hung up', delayMs: 300 } }
    request.end(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }))
    await findRecorded('hung up')
    request.destroy()
    expect((await findEnded('hung up')).state).toBe('ok')
  })
})

describe('the header MCP-Protocol-Version in a session', () => {
  it('may be left out, as Gemini CLI does', async () => {
    const session = await openSession(gateway)
    expect(namesIn((await session.request('tools/list')).result)).toContain('rec_echo')
    expect(textOf((await session.call('rec_echo', { text: 'no header' })).result)).toBe('no header')
  })

  it('may name any revision with sessions', async () => {
    for (const version of ['2025-03-26', '2025-06-18', '2025-11-25']) {
      const session = await openSession(gateway, { version })
      expect((await session.request('tools/list')).status, version).toBe(200)
    }
  })

  it('is refused when nobody knows it, whatever the request', async () => {
    const session = await openSession(gateway)
    const headers = await headersOf(gateway, 'agent', {
      'mcp-session-id': session.id,
      'mcp-protocol-version': '2031-01-01',
      accept: 'text/event-stream',
    })
    const body = JSON.stringify({ jsonrpc: '2.0', id: 3, method: 'tools/list' })
    for (const method of ['POST', 'GET', 'DELETE']) {
      const reply = await send(gateway.mcpUrl, { method, headers, ...(method === 'POST' && { body }) })
      expect(reply.status, method).toBe(400)
      expect(reply.error, method).toMatchObject({ code: -32022, data: { requested: '2031-01-01' } })
    }
    expect((await session.request('tools/list')).status).toBe(200)
  })
})

it('lets a client look with `server/discover` first and open a session afterwards, as Claude Code does', async () => {
  const discovered = await ask(gateway, 'server/discover')
  expect(discovered.status).toBe(200)
  const session = await openSession(gateway, { version: legacyVersion })
  expect(session.initialized.status).toBe(200)
  expect(textOf((await session.call('rec_echo', { text: 'fell back' })).result)).toBe('fell back')
})

describe('a cancellation', () => {
  it('that comes after the answer changes nothing, as OpenCode sends it after every call', async () => {
    const session = await openSession(gateway)
    expect(textOf((await session.call('rec_echo', { text: 'long done' }, 77)).result)).toBe('long done')
    const before = (await readCancellations(record)).length
    const late = await session.post({ method: 'notifications/cancelled', params: { requestId: 77, reason: 'over' } })
    expect(late.status).toBe(202)
    expect((await session.call('rec_echo', { text: 'goes on' }, 77)).status).toBe(200)
    expect((await findEnded('long done')).state).toBe('ok')
    expect(await readCancellations(record)).toHaveLength(before)
  })

  it.each([
    ['a number', '5', '5'],
    ['text', '"abc"', '"abc"'],
    ['text with its letters escaped', '"caf\\u00e9 \\/"', '"café /"'],
    ['a number beyond what is exact', '12345678901234567890', '12345678901234567890'],
    ['a fraction', '1.0', '1.0'],
  ])('finds the call whose id is %s', async (what, id, requestId) => {
    const session = await openSession(gateway)
    const text = `cancelled by ${what}`
    const params = JSON.stringify({ name: 'rec_echo', arguments: { text, delayMs: 60_000 } })
    const call = session.post(`{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":${params}}`)
    await findRecorded(text)
    await session.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${requestId}}}`)
    await call
    expect((await findEnded(text)).state).toBe('cancelled')
  })

  it('of nothing in particular is taken and ignored', async () => {
    const session = await openSession(gateway)
    const running = session.call('rec_echo', { text: 'not meant', delayMs: 300 }, 1)
    await findRecorded('not meant')
    for (const params of [{}, { requestId: null }, { requestId: '1' }, { requestId: {} }, { requestId: 2 }]) {
      expect((await session.post({ method: 'notifications/cancelled', params })).status).toBe(202)
    }
    expect(textOf((await running).result)).toBe('not meant')
  })
})

describe('the standing stream', () => {
  const changeList = (session: RawSession, name: string) => session.call('rec_change_list', { name })
  const changes = (stream: Stream) =>
    eventsIn(stream.text()).filter((event) => event.includes('notifications/tools/list_changed')).length

  it('tells a change of the list, also one that came before the stream was opened', async () => {
    const session = await openSession(gateway)
    await changeList(session, 'early_bird')
    await poll(
      async () => namesIn((await session.request('tools/list')).result).includes('rec_early_bird') || undefined,
    )
    const stream = await openStream(gateway, session.id)
    expect(stream.status).toBe(200)
    await poll(() => changes(stream) === 1 || undefined)
    await changeList(session, 'second_bird')
    await poll(() => changes(stream) === 2 || undefined)
    stream.close()
  })

  it('is replaced by a newer one of the same session', async () => {
    const session = await openSession(gateway)
    const first = await openStream(gateway, session.id)
    const second = await openStream(gateway, session.id)
    await first.ended
    await changeList(session, 'third_bird')
    await poll(() => changes(second) === 1 || undefined)
    second.close()
  })

  it('tells nothing when what this client sees has not changed', async () => {
    await using quiet = await startTestGateway({
      servers: { rec: recordingAt(folder, 'quiet').server },
      toolsets: { fixed: { tools: ['rec_echo'] } },
    })
    const all = await openSession(quiet)
    const fixed = await openSession(quiet, { path: '/mcp/t/fixed' })
    const allStream = await openStream(quiet, all.id)
    const fixedStream = await openStream(quiet, fixed.id, 'agent', '/mcp/t/fixed')
    await changeList(all, 'fresh')
    await poll(() => changes(allStream) === 1 || undefined)
    expect(changes(fixedStream)).toBe(0)
    allStream.close()
    fixedStream.close()
  })
})

it('takes answers and notifications that nobody waits for with 202', async () => {
  const session = await openSession(gateway)
  const messages = [
    { id: 1, result: {} },
    { id: 'x', error: { code: -1, message: 'no' } },
    { method: 'notifications/roots/list_changed' },
    { method: 'notifications/never-heard-of', params: { a: 1 } },
  ]
  for (const message of messages) {
    const reply = await session.post(message)
    expect(reply.status).toBe(202)
    expect(reply.text).toBe('')
  }
})

describe('clients that never say goodbye', () => {
  it('leave a bounded number of sessions: the one silent for longest gives way', async () => {
    await using crowded = await startTestGateway({})
    const http = new Agent({ keepAlive: true, maxSockets: 16 })
    const neighbour = await openSession(crowded, { agent: 'neighbour' })
    const first = await openSession(crowded, { agent: 'crowd' })
    const second = await openSession(crowded, { agent: 'crowd' })
    const headers = await headersOf(crowded, 'crowd')
    const body = JSON.stringify(initialize())
    const openMany = (count: number) =>
      Promise.all(Array.from({ length: count }, () => send(crowded.mcpUrl, { headers, body, agent: http })))
    await openMany(1990)
    expect((await second.request('ping')).status).toBe(200)
    const opened = await openMany(100)
    http.destroy()
    expect(opened.every(({ status }) => status === 200)).toBe(true)
    expect((await first.request('ping')).status).toBe(404)
    expect((await second.request('ping')).status).toBe(200)
    expect((await neighbour.request('ping')).status).toBe(200)
  })

  it('are forgotten after an hour of silence, while one that listens or speaks is kept', async () => {
    const clock = createMovableClock()
    await using patient = await startTestGateway({}, { clock })
    const silent = await openSession(patient)
    const speaking = await openSession(patient)
    const listening = await openSession(patient)
    const stream = await openStream(patient, listening.id)
    for (let minutes = 0; minutes <= 75; minutes += 5) {
      clock.advance(300_000)
      expect((await speaking.request('ping')).status).toBe(200)
    }
    expect((await silent.request('ping')).status).toBe(404)
    expect((await speaking.request('ping')).status).toBe(200)
    expect((await listening.request('ping')).status).toBe(200)
    stream.close()
  })
})

it('serves a hundred sessions of one agent and of many at once', async () => {
  const sessions = await Promise.all(
    Array.from({ length: 100 }, (_, index) => openSession(gateway, { agent: index % 2 === 0 ? 'many' : `m-${index}` })),
  )
  expect(new Set(sessions.map(({ id }) => id)).size).toBe(100)
  const answers = await Promise.all(
    sessions.map((session, index) => session.call('rec_echo', { text: `s${index}` }, 1)),
  )
  expect(answers.map(({ result }) => textOf(result))).toEqual(sessions.map((_, index) => `s${index}`))
  expect((await Promise.all(sessions.map((session) => session.end()))).every(({ status }) => status === 204)).toBe(true)
})

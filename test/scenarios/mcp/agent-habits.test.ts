import { beforeAll, describe, expect, it } from 'vitest'
import { readCancellations, readRecord } from '../../fixtures/fixtures.ts'
import { acceptTools, poll, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import {
  allowAll,
  ask,
  eventsIn,
  headersOf,
  namesIn,
  open,
  openSession,
  openStream,
  recordedCalls,
  recordingAt,
  send,
  startRecordingGateway,
  temporaryFolder,
  textOf,
} from './raw.ts'

let gateway: TestGateway
let record: string

beforeAll(async () => {
  const started = await startRecordingGateway({ rules: allowAll })
  ;({ gateway, record } = started)
  return started.close
})

async function findCall(of: TestGateway, tool: string) {
  return poll(async () => (await recordedCalls(of)).findLast((call) => call.tool === tool && call.endedAt))
}

describe('a gateway that was started again on the same data', () => {
  it('refuses the call of a forgotten session with 404 and does not run it; repeated in a new session it runs once', async () => {
    await using folder = await temporaryFolder()
    const { file, server } = recordingAt(folder.path)
    const config = { servers: { rec: server } }
    const first = await startTestGateway(config, { folder: folder.path })
    const session = await openSession(first, { agent: 'agent' })
    const headers = await headersOf(first, 'agent', { 'mcp-session-id': session.id })
    const port = Number(new URL(first.url).port)
    await first.close()

    await using second = await startTestGateway(config, { folder: folder.path, port })
    await second.reach('rec', 'connected')
    const params = { name: 'rec_echo', arguments: { text: 'repeated' } }
    const body = JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'tools/call', params })
    const refused = await send(second.mcpUrl, { headers, body })
    expect(refused.status).toBe(404)
    expect(refused.message).toMatchObject({ id: 7, error: { code: -32001, data: { code: 'session-not-found' } } })
    const stream = await openStream(second, session.id)
    expect(stream.status).toBe(404)
    stream.close()
    expect(await readRecord(file)).toEqual([])

    const renewed = await openSession(second, { agent: 'agent' })
    expect(textOf((await renewed.call('rec_echo', { text: 'repeated' }, 7)).result)).toBe('repeated')
    expect(await readRecord(file)).toHaveLength(1)
    expect(await recordedCalls(second)).toHaveLength(1)
  })
})

describe('a client that says goodbye with DELETE, as Codex does', () => {
  it('in the middle of a streamed answer ends that answer, and its call is cancelled down to the server', async () => {
    const session = await openSession(gateway)
    const headers = await headersOf(gateway, 'agent', { 'mcp-session-id': session.id })
    const request = open(gateway.mcpUrl, { headers })
    const params = { name: 'rec_progress', arguments: { steps: 10_000 }, _meta: { progressToken: 'p' } }
    request.end(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }))
    let text = ''
    const ended = new Promise<void>((resolve) => {
      request.on('response', (response) => {
        response.on('data', (chunk) => {
          text += chunk
        })
        response.on('close', resolve)
      })
    })
    await poll(() => eventsIn(text).length > 2 || undefined)
    expect((await session.end()).status).toBe(204)
    await ended
    expect(eventsIn(text).every((event) => event.includes('notifications/progress'))).toBe(true)
    const { id } = await poll(async () => (await readRecord(record)).find(({ name }) => name === 'progress'))
    await poll(async () => (await readCancellations(record)).find(({ cancelled }) => cancelled === id))
    expect((await findCall(gateway, 'rec_progress')).state).toBe('cancelled')
  })

  it('beside its standing stream leaves its answered calls as they ended', async () => {
    const session = await openSession(gateway)
    const stream = await openStream(gateway, session.id)
    await session.call('rec_structured')
    expect((await session.end()).status).toBe(204)
    await stream.ended
    expect((await findCall(gateway, 'rec_structured')).state).toBe('ok')
  })
})

describe('a tool that a client hears of', () => {
  it('is in both of its lists when it lists twice at once, as OpenCode may, and can be called', async () => {
    const session = await openSession(gateway)
    const stream = await openStream(gateway, session.id)
    await session.call('rec_change_list', { name: 'listed_twice' })
    await poll(() => stream.text().includes('notifications/tools/list_changed') || undefined)
    const [once, again] = await Promise.all([session.request('tools/list'), session.request('tools/list')])
    expect(namesIn(once.result)).toContain('rec_listed_twice')
    expect(again.result).toEqual(once.result)
    await acceptTools(gateway, 'rec')
    expect(textOf((await session.call('rec_listed_twice', { now: true })).result)).toBe('{"now":true}')
    stream.close()
  })

  it('is there without a session as well, as soon as anybody was told', async () => {
    const session = await openSession(gateway)
    const stream = await openStream(gateway, session.id)
    await session.call('rec_change_list', { name: 'told_once' })
    await poll(() => stream.text().includes('notifications/tools/list_changed') || undefined)
    expect(namesIn((await ask(gateway, 'tools/list')).result)).toContain('rec_told_once')
    stream.close()
  })
})

it('takes a list request with a progress token of 0, and a call with `_meta` of its own, as Codex sends them', async () => {
  const session = await openSession(gateway, { version: '2025-06-18' })
  const listed = await session.request('tools/list', { _meta: { progressToken: 0 } })
  expect(namesIn(listed.result)).toContain('rec_echo')
  const _meta = { callId: 'c1', 'x-codex-turn-metadata': { thread_id: 't' }, progressToken: 0 }
  const called = await session.request('tools/call', { name: 'rec_echo', arguments: { text: 'with meta' }, _meta })
  expect(textOf(called.result)).toBe('with meta')
})

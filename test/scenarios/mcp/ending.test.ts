import { mkdir } from 'node:fs/promises'
import { Agent } from 'node:http'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { startGateway } from '../../../src/http/serve.ts'
import { readCancellations, readRecord } from '../../fixtures/fixtures.ts'
import { poll, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import {
  allowAll,
  ask,
  eventsIn,
  headersOf,
  metaKey,
  modernRequest,
  open,
  openSession,
  recordingAt,
  send,
  temporaryFolder,
  textOf,
} from './raw.ts'

async function startWithRecording(folder: string, graceMs: number) {
  const { file, server } = recordingAt(folder)
  const gateway = await startTestGateway({ servers: { rec: server }, rules: allowAll }, { graceMs })
  return { file, gateway }
}

const arrived = (file: string, count: number) =>
  poll(async () => (await readRecord(file)).length === count || undefined)

async function openEvents(
  gateway: TestGateway,
  method: 'GET' | 'POST',
  headers: Record<string, string>,
  body?: string,
) {
  const request = open(gateway.mcpUrl, { method, headers })
  request.end(body)
  let text = ''
  const ended = new Promise<'ended' | 'broken'>((resolve) => {
    request.on('error', () => resolve('broken'))
    request.on('response', (response) => {
      response.on('data', (chunk) => {
        text += chunk
      })
      response.on('end', () => resolve('ended'))
      response.on('error', () => resolve('broken'))
    })
  })
  await new Promise((resolve) => request.on('response', resolve))
  return { ended, events: () => eventsIn(text) }
}

describe('a gateway that is told to stop', () => {
  it('lets calls under way finish, in sessions and without, and answers them', async () => {
    await using folder = await temporaryFolder()
    const { file, gateway } = await startWithRecording(folder.path, 10_000)
    await using _ = gateway
    const session = await openSession(gateway)
    const slow = (text: string) => ({ name: 'rec_echo', arguments: { text, delayMs: 700 } })
    const official = await gateway.connectV1('sdk')
    const calls = [
      session.request('tools/call', slow('in a session')).then(({ result }) => result),
      ask(gateway, 'tools/call', slow('stateless')).then(({ result }) => result),
      official.callTool(slow('of an SDK')),
    ]
    await arrived(file, 3)
    const stopped = gateway.stop()
    expect((await Promise.all(calls)).map(textOf)).toEqual(['in a session', 'stateless', 'of an SDK'])
    await stopped
    expect(await readCancellations(file)).toEqual([])
  })

  it('ends calls that do not finish in time with an answer that says so', async () => {
    await using folder = await temporaryFolder()
    const { file, gateway } = await startWithRecording(folder.path, 100)
    await using _ = gateway
    const session = await openSession(gateway)
    const params = { name: 'rec_echo', arguments: { text: 'too slow', delayMs: 60_000 } }
    const calls = [session.request('tools/call', params), ask(gateway, 'tools/call', params)]
    await arrived(file, 2)
    const stopped = gateway.stop()
    for (const reply of await Promise.all(calls)) {
      expect(reply.status).toBe(200)
      expect(reply.result).toMatchObject({ isError: true })
      expect(textOf(reply.result)).toContain('shutting-down')
    }
    await stopped
  })

  it('says of a writing call that it cannot know, once it was sent', async () => {
    await using folder = await temporaryFolder()
    const { file, server } = recordingAt(folder.path)
    const override = { echo: { risk: 'write' as const } }
    await using gateway = await startTestGateway(
      { servers: { rec: { ...server, tools: { override } } }, rules: allowAll },
      { graceMs: 100 },
    )
    const call = ask(gateway, 'tools/call', { name: 'rec_echo', arguments: { text: 'written', delayMs: 60_000 } })
    await arrived(file, 1)
    const stopped = gateway.stop()
    expect(textOf((await call).result)).toContain('call-unknown')
    await stopped
  })

  it('ends standing streams, and subscriptions with their final result', async () => {
    await using folder = await temporaryFolder()
    const { gateway } = await startWithRecording(folder.path, 1000)
    await using _ = gateway
    const session = await openSession(gateway)
    const standing = await openEvents(
      gateway,
      'GET',
      await headersOf(gateway, 'agent', { accept: 'text/event-stream', 'mcp-session-id': session.id }),
    )
    const wanted = { notifications: { toolsListChanged: true } }
    const { headers, body } = await modernRequest(gateway, 'subscriptions/listen', wanted, { id: 'sub' })
    const subscription = await openEvents(gateway, 'POST', headers, body)
    const client = await gateway.connectV2('sdk')
    const official = await client.listen({ toolsListChanged: true })
    await poll(() => subscription.events().length === 1 || undefined)

    const stopped = gateway.stop()
    expect(await standing.ended).toBe('ended')
    expect(await subscription.ended).toBe('ended')
    expect(JSON.parse(subscription.events().at(-1) ?? '')).toEqual({
      jsonrpc: '2.0',
      id: 'sub',
      result: { resultType: 'complete', _meta: { [metaKey('subscriptionId')]: 'sub' } },
    })
    expect(await official.closed).toBe('graceful')
    await stopped
  })

  it('takes no new call on a connection that is still open, and no new connection', async () => {
    await using folder = await temporaryFolder()
    const { file, gateway } = await startWithRecording(folder.path, 10_000)
    await using _ = gateway
    const http = new Agent({ keepAlive: true, maxSockets: 1 })
    const session = await openSession(gateway, { http })
    const slow = session.call('rec_echo', { text: 'the last', delayMs: 700 })
    const late = session.call('rec_echo', { text: 'too late' })
    await arrived(file, 1)
    const stopped = gateway.stop()
    const { hostname, port } = new URL(gateway.url)
    const refused = await new Promise((resolve) => {
      const socket = connect(Number(port), hostname)
      socket.on('connect', () => resolve('taken'))
      socket.on('error', () => resolve('refused'))
    })
    expect(refused).toBe('refused')
    expect(textOf((await slow).result)).toBe('the last')
    const said = await late.catch(() => undefined)
    expect([undefined, 503]).toContain(said?.status)
    await stopped
    http.destroy()
    expect(await readRecord(file)).toHaveLength(1)
  })

  it('waits for no client that keeps its connection, does not read or never finishes its request', async () => {
    await using folder = await temporaryFolder()
    const { gateway } = await startWithRecording(folder.path, 100)
    await using _ = gateway
    const { hostname, port, host } = new URL(gateway.url)
    const token = await gateway.token('agent')
    const http = new Agent({ keepAlive: true })
    await openSession(gateway, { http })
    const sockets = ['', 'POST /mcp HTTP/1.1\r\n', half(host, token)].map((bytes) => {
      const socket = connect(Number(port), hostname, () => socket.write(bytes))
      socket.on('error', () => {})
      return new Promise((resolve) => socket.on('close', resolve))
    })
    await ask(gateway, 'tools/list')
    await gateway.stop()
    await Promise.all(sockets)
    http.destroy()
    await expect(send(gateway.url, { method: 'GET', path: '/livez' })).rejects.toThrow()
  })
})

it('leaves its port free when it could not start to the end', async () => {
  await using folder = await temporaryFolder()
  await mkdir(join(folder.path, 'data', 'gateway.json', 'in the way'), { recursive: true })
  const port = await freePort()
  const start = () => startGateway({ dataFolder: join(folder.path, 'data'), port })
  await expect(start()).rejects.toThrow()
  await using after = await startTestGateway({}, { port })
  expect((await send(after.url, { method: 'GET', path: '/livez' })).status).toBe(200)
})

function half(host: string, token: string): string {
  const head = [
    `POST /mcp HTTP/1.1`,
    `Host: ${host}`,
    `Authorization: Bearer ${token}`,
    'Content-Type: application/json',
  ]
  return `${[...head, 'Content-Length: 1000'].join('\r\n')}\r\n\r\n{"jsonrpc"`
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : 0
  await new Promise((resolve) => server.close(resolve))
  return port
}

import { once } from 'node:events'
import { createServer } from 'node:http'
import type { Socket } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { sendExport } from '../../src/http/routes/audit.ts'
import { createDelivery } from '../../src/lib/delivery.ts'
import { stdioFixture } from '../fixtures/fixtures.ts'
import { createMovableClock, type MovableClock } from '../scenarios/mcp/clock.ts'
import { type ConfigInput, poll, startTestGateway, type TestGateway } from '../support/gateway.ts'
import { bufferedFor, pipeline, type RawRequest, statusOf, toText } from '../support/sockets.ts'

const megabyte = 1024 * 1024
const bound = 2 * megabyte

async function start(limits: NonNullable<ConfigInput['limits']> = {}, clock?: MovableClock): Promise<TestGateway> {
  const servers = { rec: stdioFixture('recording', ['--tools', '1000']) }
  const rules = [{ tools: '*', action: 'allow' as const }]
  const config = { servers, rules, limits: { buffered: bound, result: 16 * megabyte, ...limits } }
  return startTestGateway(config, clock ? { clock } : {})
}

async function asAgent(gateway: TestGateway, request: RawRequest): Promise<string> {
  const headers = { authorization: `Bearer ${await gateway.token('agent')}`, ...request.headers }
  return toText(gateway, { ...request, headers })
}

/** The most that was counted until nothing changed any more. */
async function mostBuffered(gateway: TestGateway): Promise<number> {
  let most = 0
  let [last, since] = [-1, performance.now()]
  await poll(() => {
    const now = bufferedFor(gateway)
    if (now !== last) [last, since] = [now, performance.now()]
    most = Math.max(most, now)
    return performance.now() - since > 1000 || undefined
  }, 30_000)
  return most
}

async function closedBy(socket: Socket): Promise<void> {
  const closed = once(socket, 'close')
  socket.resume()
  await closed
}

describe('answers of REST that nobody reads', () => {
  it.each(['/api/openapi.json', '/api/tools'])('are bounded: %s', async (path) => {
    await using gateway = await start()
    const one = await asAgent(gateway, { method: 'GET', path })
    const size = Buffer.byteLength(await (await gateway.fetch('agent', path)).text())
    expect(40 * size).toBeGreaterThan(3 * bound)
    const sockets = await Promise.all(
      [1, 2].map(() =>
        pipeline(
          gateway,
          Array.from({ length: 100 }, () => one),
        ),
      ),
    )
    expect(await mostBuffered(gateway)).toBeLessThan(bound + 16 * 1024 * 200)
    for (const socket of sockets) socket.destroy()
    await poll(() => bufferedFor(gateway) === 0 || undefined)
    expect((await gateway.fetch('agent', path)).status).toBe(200)
  })

  it('are bounded: the kept result of an earlier call with the same key', async () => {
    await using gateway = await start()
    const body = JSON.stringify({ arguments: { bytes: megabyte } })
    const headers = { 'content-type': 'application/json', 'idempotency-key': 'one' }
    const call = { method: 'POST', path: '/api/tools/rec_big/call', headers, body }
    expect((await gateway.fetch('agent', call.path, call)).status).toBe(200)
    const one = await asAgent(gateway, call)
    const sockets = await Promise.all(
      [1, 2].map(() =>
        pipeline(
          gateway,
          Array.from({ length: 40 }, () => one),
        ),
      ),
    )
    expect(await mostBuffered(gateway)).toBeLessThan(2 * bound)
    for (const socket of sockets) socket.destroy()
    await poll(() => bufferedFor(gateway) === 0 || undefined)
  })

  it('are bounded: an export ends when nothing of it is read for too long', async () => {
    const clock = createMovableClock()
    let read = 0
    async function* endless() {
      for (; ; read++) yield 'x'.repeat(64 * 1024)
    }
    const audit = { export: endless }
    const server = createServer((_, response) => {
      const account = { buffered: () => 0, hasRoom: () => true, add() {} }
      const delivery = createDelivery({ response, account, clock, patience: 30_000 })
      sendExport({ audit }, new URLSearchParams('format=jsonl'), { response, delivery }).catch(() => {})
    })
    onTestFinished(() => void server.close())
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const address = server.address()
    const url = `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`
    const socket = await pipeline({ url }, [toText({ url }, { method: 'GET', path: '/' })])
    let [before, since] = [-1, performance.now()]
    await poll(() => {
      if (read !== before) [before, since] = [read, performance.now()]
      return (read > 0 && performance.now() - since > 300) || undefined
    })
    clock.advance(32_000)
    await closedBy(socket)
  })
})

describe('requests of REST', () => {
  const upload = { method: 'POST', path: '/api/tools/rec_echo/call' }
  const chunked = { 'content-type': 'application/json', 'transfer-encoding': 'chunked' }

  it('whose length is not announced are counted as they come', async () => {
    await using gateway = await start()
    const head = await asAgent(gateway, { ...upload, headers: chunked })
    const chunk = `${(512 * 1024).toString(16)}\r\n${'x'.repeat(512 * 1024)}\r\n`
    const sockets: Socket[] = []
    for (let n = 0; n < 4; n++) sockets.push(await pipeline(gateway, [head, chunk]))
    await poll(() => bufferedFor(gateway) === bound || undefined)
    const refused = await pipeline(gateway, [head, chunk])
    expect(await statusOf(refused)).toBe('429')
    for (const socket of [...sockets, refused]) socket.destroy()
    await poll(() => bufferedFor(gateway) === 0 || undefined)
  })

  it('of nobody, to sign in, may be no longer than a name and a password', async () => {
    await using gateway = await start()
    const headers = { ...chunked, 'sec-fetch-site': 'same-origin' }
    const head = toText(gateway, { method: 'POST', path: '/api/sign-in', headers })
    const socket = await pipeline(gateway, [head, `8000\r\n${'x'.repeat(0x8000)}\r\n`])
    expect(await statusOf(socket)).toBe('413')
    socket.destroy()
  })
})

describe('a client without a token', () => {
  it('whose requests on one connection are too many at once loses the connection', async () => {
    await using gateway = await start()
    const one = toText(gateway, { method: 'GET', path: '/icon.svg' })
    const socket = await pipeline(gateway, [one.repeat(1000)])
    await closedBy(socket)
  })

  it('that does not read loses the connection', async () => {
    const clock = createMovableClock()
    await using gateway = await start({ drain: 30_000 }, clock)
    const page = await (await fetch(gateway.url)).text()
    const [path = ''] = /\/assets\/[\w.-]+\.js/.exec(page) ?? []
    const one = toText(gateway, { method: 'GET', path })
    const socket = await pipeline(gateway, [one.repeat(50)])
    // More than the system takes: the client could read some of it, and the rest waits.
    await once(socket, 'readable')
    await new Promise((resolve) => setTimeout(resolve, 500))
    clock.advance(30_000 + (50 * megabyte) / 64)
    await closedBy(socket)
  })
})

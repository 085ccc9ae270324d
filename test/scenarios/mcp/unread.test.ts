import { once } from 'node:events'
import type { Socket } from 'node:net'
import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { stdioFixture } from '../../fixtures/fixtures.ts'
import { type Fields, toFields } from '../../fixtures/lib/json-rpc.ts'
import { type ConfigInput, poll, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { heldBuffers } from '../../support/memory.ts'
import { bufferedFor, pipeline, statusOf, toText } from '../../support/sockets.ts'
import { createMovableClock, type MovableClock } from './clock.ts'
import { allowAll, ask, headersOf, modernRequest, openSession, type Reply, recordedCalls, textOf } from './raw.ts'

const megabyte = 1024 * 1024
/** More than the socket buffers of the system take. */
const huge = 12 * megabyte

async function start(limits: NonNullable<ConfigInput['limits']>, clock?: MovableClock): Promise<TestGateway> {
  const config = { servers: { rec: stdioFixture('recording') }, rules: allowAll }
  return startTestGateway({ ...config, limits: { result: 16 * megabyte, ...limits } }, clock ? { clock } : {})
}

async function mcpCall(gateway: TestGateway, given: Fields): Promise<string> {
  const { headers, body } = await modernRequest(gateway, 'tools/call', { name: 'rec_big', arguments: given })
  return toText(gateway, { method: 'POST', path: '/mcp', headers, body })
}

async function restCall(gateway: TestGateway, given: Fields): Promise<string> {
  const headers = await headersOf(gateway, 'agent')
  const body = JSON.stringify({ arguments: given })
  return toText(gateway, { method: 'POST', path: '/api/tools/rec_big/call', headers, body })
}

const echo = (gateway: TestGateway, agent = 'agent') =>
  ask(gateway, 'tools/call', { name: 'rec_echo', arguments: { text: 'hello' } }, { agent })

async function codeOf(reply: Promise<Reply>): Promise<unknown> {
  const { result } = await reply
  return toFields(toFields(result._meta)['sallyport/error']).code
}

/** All calls that were asked for have ended. */
async function ended(gateway: TestGateway, count: number): Promise<void> {
  await poll(async () => {
    const calls = await recordedCalls(gateway)
    return (calls.length >= count && calls.every(({ state }) => state !== 'running')) || undefined
  }, 40_000)
  await turn()
}

/** The lengths of the next answers on a socket, with the beginning of each. */
async function readAnswers(socket: Socket, count: number): Promise<Read[]> {
  const answers: Read[] = []
  let waiting: Buffer = Buffer.alloc(0)
  let body: Read | undefined
  const take = (chunk: Buffer) => {
    waiting = body ? chunk : Buffer.concat([waiting, chunk])
    while (waiting.length > 0) {
      if (body) {
        const part = waiting.subarray(0, body.length - body.read)
        body.text += body.text.length < 400 ? part.toString('latin1', 0, 400) : ''
        body.read += part.length
        waiting = waiting.subarray(part.length)
        if (body.read < body.length) return
        answers.push(body)
        body = undefined
      }
      const end = waiting.indexOf('\r\n\r\n') + 4
      if (end < 4) return
      const length = Number(/content-length: (\d+)/i.exec(waiting.toString('latin1', 0, end))?.[1])
      body = { length, read: 0, text: '' }
      waiting = waiting.subarray(end)
    }
  }
  socket.on('data', take)
  socket.resume()
  await poll(() => answers.length === count || undefined, 30_000)
  socket.off('data', take)
  return answers
}

async function readBytes(socket: Socket, least: number): Promise<void> {
  let bytes = 0
  socket.on('data', (chunk: Buffer) => {
    bytes += chunk.length
  })
  socket.resume()
  await poll(() => bytes >= least || undefined, 30_000)
}

type Read = { readonly length: number; read: number; text: string }

const surfaces = { mcp: mcpCall, rest: restCall }

describe.each(['mcp', 'rest'] as const)('answers over %s that nobody reads', (surface) => {
  const call = surfaces[surface]

  it('are bounded for one principal, whose further calls are refused while those of others pass', async () => {
    await using gateway = await start({ concurrent: 64, buffered: 4 * megabyte })
    const before = heldBuffers()
    const one = await call(gateway, { bytes: megabyte })
    const socket = await pipeline(
      gateway,
      Array.from({ length: 144 }, () => one),
    )
    await ended(gateway, 64) // those that were refused are counted, not recorded one by one
    expect(bufferedFor(gateway)).toBeGreaterThan(2 * megabyte)
    expect(bufferedFor(gateway)).toBeLessThan(4.5 * megabyte)
    // Kept whole, the answers of 64 calls would take 64 MB, and of all of them 144 MB.
    expect(heldBuffers() - before).toBeLessThan(50 * megabyte)
    expect(await codeOf(echo(gateway))).toBe('limit-exceeded')
    expect(textOf((await echo(gateway, 'other')).result)).toBe('hello')
    socket.destroy()
    await poll(() => bufferedFor(gateway) === 0 || undefined)
    expect(textOf((await echo(gateway)).result)).toBe('hello')
  })

  it('keep their calls in place until they have been read', async () => {
    await using gateway = await start({ concurrent: 1 })
    const socket = await pipeline(gateway, [await call(gateway, { bytes: huge })])
    await ended(gateway, 1)
    expect(textOf((await echo(gateway)).result)).toContain('has 1 running call')
    await readBytes(socket, huge)
    await poll(() => bufferedFor(gateway) === 0 || undefined)
    expect(textOf((await echo(gateway)).result)).toBe('hello')
    socket.destroy()
  })

  it('end with their connection when the client reads nothing for too long', async () => {
    const clock = createMovableClock()
    await using gateway = await start({ concurrent: 2, drain: 30_000 }, clock)
    const one = await call(gateway, { bytes: huge })
    const stuck = await pipeline(gateway, [one])
    const closed = new Promise((resolve) => stuck.on('close', resolve))
    const other = await pipeline(gateway, [one])
    await ended(gateway, 2)
    expect(textOf((await echo(gateway)).result)).toContain('has 2 running calls')
    await readBytes(other, huge)
    clock.advance(30_000 + (huge * 1.1) / 64)
    await poll(() => bufferedFor(gateway) === 0 || undefined)
    stuck.resume()
    await closed
    expect(textOf((await echo(gateway)).result)).toBe('hello')
    other.write(await call(gateway, { bytes: 10 }))
    await readBytes(other, 10)
    other.destroy()
  })
})

it('bounds what all sockets of a principal leave unread together', async () => {
  await using gateway = await start({ concurrent: 64, buffered: 20 * megabyte })
  const one = await mcpCall(gateway, { bytes: huge })
  const sockets = await Promise.all(Array.from({ length: 4 }, () => pipeline(gateway, [one])))
  await ended(gateway, 4)
  expect(bufferedFor(gateway)).toBeGreaterThan(huge)
  expect(bufferedFor(gateway)).toBeLessThan(20 * megabyte)
  expect(await codeOf(echo(gateway))).toBe('limit-exceeded')
  for (const socket of sockets) socket.destroy()
  await poll(() => bufferedFor(gateway) === 0 || undefined)
})

it('answers every pipelined call of a client that reads late, and says which answers were dropped', async () => {
  await using gateway = await start({ concurrent: 64, buffered: 4 * megabyte })
  const one = await mcpCall(gateway, { bytes: megabyte })
  const socket = await pipeline(
    gateway,
    Array.from({ length: 40 }, () => one),
  )
  await ended(gateway, 40)
  const answers = await readAnswers(socket, 40)
  const short = answers.filter(({ length }) => length < megabyte)
  expect(answers.length - short.length).toBeGreaterThanOrEqual(4)
  expect(short.length).toBeGreaterThan(0)
  for (const { text } of short) expect(text).toContain('limit-exceeded')
  expect(bufferedFor(gateway)).toBe(0)
  socket.destroy()
})

it('counts the answers of a session of the older era as well', async () => {
  await using gateway = await start({ concurrent: 64, buffered: 4 * megabyte })
  const session = await openSession(gateway)
  const headers = { ...(await headersOf(gateway, 'agent')), 'mcp-session-id': session.id }
  const calls = Array.from({ length: 30 }, (_, id) => {
    const params = { name: 'rec_big', arguments: { bytes: megabyte } }
    const body = JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params })
    return toText(gateway, { method: 'POST', path: '/mcp', headers, body })
  })
  const socket = await pipeline(gateway, calls)
  await ended(gateway, 30)
  expect(bufferedFor(gateway)).toBeGreaterThan(2 * megabyte)
  expect(bufferedFor(gateway)).toBeLessThan(4.5 * megabyte)
  socket.destroy()
  await poll(() => bufferedFor(gateway) === 0 || undefined)
})

describe('large requests', () => {
  const head = async (gateway: TestGateway, length: string) => {
    const headers = Object.entries({ host: new URL(gateway.url).host, ...(await headersOf(gateway, 'agent')) })
    return `POST /mcp HTTP/1.1\r\n${headers.map(([name, value]) => `${name}: ${value}`).join('\r\n')}\r\n${length}\r\n\r\n`
  }

  it('of one principal are bounded together, before their bodies are read', async () => {
    await using gateway = await start({ request: megabyte, buffered: 4 * megabyte })
    const uploading = await head(gateway, `content-length: ${megabyte}`)
    const sockets: Socket[] = []
    for (let n = 0; n < 4; n++) sockets.push(await pipeline(gateway, [`${uploading}{`]))
    await poll(() => bufferedFor(gateway) === 4 * megabyte || undefined)
    const refused = await pipeline(gateway, [`${uploading}{`])
    expect(await statusOf(refused)).toBe('429')
    expect(textOf((await echo(gateway, 'other')).result)).toBe('hello')
    for (const socket of sockets) socket.destroy()
    await poll(() => bufferedFor(gateway) === 0 || undefined)
    expect(textOf((await echo(gateway)).result)).toBe('hello')
    refused.destroy()
  })

  it('whose length is not announced are counted as they come', async () => {
    await using gateway = await start({ request: megabyte, buffered: 2 * megabyte })
    const uploading = await head(gateway, 'transfer-encoding: chunked')
    const chunk = `${(512 * 1024).toString(16)}\r\n${'x'.repeat(512 * 1024)}\r\n`
    const sockets: Socket[] = []
    for (let n = 0; n < 4; n++) sockets.push(await pipeline(gateway, [uploading, chunk]))
    await poll(() => bufferedFor(gateway) === 2 * megabyte || undefined)
    const refused = await pipeline(gateway, [uploading, chunk])
    expect(await statusOf(refused)).toBe('429')
    for (const socket of sockets) socket.destroy()
    await poll(() => bufferedFor(gateway) === 0 || undefined)
    refused.destroy()
  })

  it('that come byte by byte take up little more memory than is counted', async () => {
    await using gateway = await start({})
    const socket = await pipeline(gateway, [await head(gateway, 'transfer-encoding: chunked')])
    const before = process.memoryUsage().rss
    const bytes = 500_000
    for (let sent = 0; sent < bytes; sent += 10_000) {
      if (!socket.write('1\r\nx\r\n'.repeat(10_000))) await once(socket, 'drain')
    }
    await poll(() => bufferedFor(gateway) === bytes || undefined)
    // Pieces that are kept as they come take up some 400 bytes each.
    expect(process.memoryUsage().rss - before).toBeLessThan(100_000_000)
    socket.destroy()
    await poll(() => bufferedFor(gateway) === 0 || undefined)
  })
})

import { Client } from 'undici'
import { createLines } from '../lib/lines.ts'
import { initialized, initializeParams, nextId, toRequest } from './messages.ts'
import type { Way } from './protocol.ts'
import type { Session } from './session.ts'
import { createWaiting } from './waiting.ts'

type OldSseWay = Extract<Way, { kind: 'old-sse' }>

const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }

/** The HTTP+SSE transport of 2024, which some peers still use: all answers arrive on one open stream. */
export async function openOldSseSession(way: OldSseWay): Promise<Session> {
  const url = new URL(way.url)
  const stream = new Client(url.origin, { headersTimeout: 60_000, bodyTimeout: 0 })
  const posts = new Client(url.origin, { headersTimeout: 60_000, bodyTimeout: 60_000 })
  const waiting = createWaiting()
  const endpoint = Promise.withResolvers<string>()
  endpoint.promise.catch(() => {})

  async function open(): Promise<string> {
    const { statusCode, body } = await stream.request({ path: url.pathname, method: 'GET', headers })
    if (statusCode !== 200) throw new Error(`The stream answered with status ${statusCode}`)
    const end = (error: Error) => {
      endpoint.reject(error)
      waiting.fail(error)
    }
    body.on('data', createLines(onLine).push)
    body.on('error', end)
    body.on('end', () => end(new Error('The stream ended')))
    return endpoint.promise
  }

  function onLine(line: Buffer): void {
    if (line.toString('latin1', 0, 6) !== 'data: ') return
    if (line[6] === 0x2f) return endpoint.resolve(line.toString('utf8', 6).trim())
    waiting.receive(line.subarray(6))
  }

  async function post(path: string, message: string): Promise<void> {
    const { statusCode, body } = await posts.request({ path, method: 'POST', headers, body: message })
    await body.dump()
    if (statusCode >= 300) throw new Error(`Status ${statusCode}`)
  }

  async function close(): Promise<void> {
    await Promise.all([stream.destroy(), posts.destroy()])
  }

  try {
    const path = await open()
    const exchange = async (id: number, body: string) => {
      const [answer] = await Promise.all([waiting.expect(id), post(path, body)])
      return answer
    }
    const id = nextId()
    await exchange(id, toRequest(id, 'initialize', initializeParams))
    await post(path, initialized)
    return { exchange, listen: async () => {}, close }
  } catch (error) {
    await close()
    throw error
  }
}

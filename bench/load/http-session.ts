import { Client, type Dispatcher } from 'undici'
import { initialized, initializeParams, nextId, protocolVersion, toRequest } from './messages.ts'
import type { Way } from './protocol.ts'
import type { Session } from './session.ts'

type HttpWay = Extract<Way, { kind: 'http' }>
type Answer = { status: number; headers: Record<string, string | string[] | undefined>; body: Buffer }

const patience = { headersTimeout: 60_000, bodyTimeout: 60_000 }

/** A minimal Streamable HTTP client, so that the client costs little in the measurement. */
export async function openHttpSession(way: HttpWay): Promise<Session> {
  const url = new URL(way.url)
  const client = new Client(url.origin, { ...patience, pipelining: 1 })
  let stream: Client | undefined
  let headers: Record<string, string> = {
    ...way.headers,
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
  }
  const send = (method: 'POST' | 'DELETE', body: string | null) =>
    new Promise<Answer>((resolve, reject) => {
      client.dispatch({ path: url.pathname, method, headers, body }, toHandler(resolve, reject))
    })

  async function exchange(id: number, body: string): Promise<Buffer> {
    const answer = await send('POST', body)
    if (answer.status !== 200) throw new Error(`Status ${answer.status}: ${answer.body.toString('utf8', 0, 300)}`)
    const type = String(answer.headers['content-type'])
    return type.startsWith('text/event-stream') ? answerIn(answer.body, id) : answer.body
  }

  async function listen(): Promise<void> {
    stream = new Client(url.origin, { headersTimeout: 60_000, bodyTimeout: 0 })
    const { statusCode, body } = await stream.request({ path: url.pathname, method: 'GET', headers })
    if (statusCode !== 200) return void (await body.dump())
    body.on('error', () => {}).resume()
  }

  async function close(): Promise<void> {
    await send('DELETE', null).catch(() => {}) // some targets do not support DELETE
    await stream?.destroy()
    await client.destroy()
  }

  try {
    const hello = await send('POST', toRequest(nextId(), 'initialize', initializeParams))
    if (hello.status !== 200)
      throw new Error(`initialize: status ${hello.status}: ${hello.body.toString('utf8', 0, 300)}`)
    const session = hello.headers['mcp-session-id']
    headers = { ...headers, 'mcp-protocol-version': protocolVersion }
    if (typeof session === 'string') headers['mcp-session-id'] = session
    await send('POST', initialized)
  } catch (error) {
    await client.destroy()
    throw error
  }
  return { exchange, listen, close }
}

function toHandler(resolve: (answer: Answer) => void, reject: (error: Error) => void): Dispatcher.DispatchHandler {
  const chunks: Buffer[] = []
  let status = 0
  let headers: Answer['headers'] = {}
  return {
    onRequestStart() {},
    onResponseStart(_controller, code, received) {
      status = code
      headers = received
    },
    onResponseData(_controller, chunk) {
      chunks.push(chunk)
    },
    onResponseEnd() {
      const [first] = chunks
      resolve({ status, headers, body: chunks.length === 1 && first ? first : Buffer.concat(chunks) })
    },
    onResponseError(_controller, error) {
      reject(error)
    },
  }
}

const dataField = Buffer.from('data:')

/** The event with the answer; earlier events are ignored. */
function answerIn(events: Buffer, id: number): Buffer {
  for (let at = events.indexOf(dataField); at !== -1; at = events.indexOf(dataField, at + 1)) {
    if (at > 0 && events[at - 1] !== 0x0a) continue
    const end = events.indexOf(0x0a, at)
    const data = events.subarray(at + dataField.length, end === -1 ? events.length : end)
    if (data.includes(`"id":${id}`)) return events[at + dataField.length] === 0x20 ? data.subarray(1) : data
  }
  throw new Error(`No answer to ${id} among the events: ${events.toString('utf8', 0, 300)}`)
}

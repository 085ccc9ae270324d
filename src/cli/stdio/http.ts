import {
  type ClientRequest,
  Agent as HttpAgent,
  type IncomingHttpHeaders,
  type IncomingMessage,
  request as requestHttp,
} from 'node:http'
import { Agent as HttpsAgent, request as requestHttps } from 'node:https'
import type { Readable } from 'node:stream'
import { GatewayError } from '../../contract/errors.ts'
import { createSseReader } from '../../wire/sse.ts'

export type Sending = {
  readonly method: 'POST' | 'GET' | 'DELETE'
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Buffer
  readonly signal: AbortSignal
  /** The complete request was sent. */
  onSent?(): void
  /** Receives each message of a streamed answer. */
  onEvent?(message: Buffer): void
}

/** A complete answer. The messages of a stream were already passed to `onEvent`. */
export type Reply = {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly streamed: boolean
  readonly body: Buffer
}

export type Http = {
  /** Throws `unreachable`; `reach` of the error says whether the gateway may have received the request. */
  send(sending: Sending): Promise<Reply>
  close(): void
}

/** The gateway sends a keep-alive at least every 15 seconds, so a longer silence means that it hangs. */
const silenceMs = 60_000

/**
 * Not `client/http.ts`, for three reasons: many requests share open sockets; an answer is read no faster than the client
 * reads it; and the bridge must know whether the gateway may have received a failed request.
 */
export function createHttp(parts: { maxBytes: number; slowDown(stream: Readable): (bytes: number) => void }): Http {
  const settings = { keepAlive: true, maxFreeSockets: 16, scheduling: 'lifo' } as const
  const agents = { plain: new HttpAgent(settings), secure: new HttpsAgent(settings) }

  function start({ url, method, headers, body, signal }: Sending): ClientRequest {
    const length = body === undefined ? {} : { 'content-type': 'application/json', 'content-length': body.length }
    const options = { method, signal, timeout: silenceMs, headers: { ...headers, ...length } }
    if (url.protocol === 'https:') return requestHttps(url, { ...options, agent: agents.secure })
    return requestHttp(url, { ...options, agent: agents.plain })
  }

  return {
    send(sending) {
      const { promise, resolve, reject } = Promise.withResolvers<Reply>()
      const request = start(sending)
      const fail = (error: unknown) => reject(toLinkError(error, sending.url))
      let response: IncomingMessage | undefined
      request.on('finish', () => sending.onSent?.())
      request.on('error', fail)
      request.on('timeout', () => {
        // A paused response is not silent: the client does not read, so we do not read either.
        if (!response?.isPaused())
          request.destroy(new GatewayError('unreachable', `The gateway sent nothing for ${silenceMs / 1000} s`))
      })
      request.on('response', (incoming) => {
        response = incoming
        incoming.on('error', fail)
        incoming.on('close', () => {
          if (!incoming.complete) fail(new Error('the answer is incomplete'))
        })
        const count = parts.slowDown(incoming)
        read(incoming, sending, { maxBytes: parts.maxBytes, count }).then(resolve, (error: unknown) => {
          fail(error)
          incoming.destroy()
        })
      })
      request.end(sending.body)
      return promise
    },
    close() {
      agents.plain.destroy()
      agents.secure.destroy()
    },
  }
}

type Reading = { readonly maxBytes: number; count(bytes: number): void }

function read(incoming: IncomingMessage, { onEvent }: Sending, { maxBytes, count }: Reading): Promise<Reply> {
  const { promise, resolve, reject } = Promise.withResolvers<Reply>()
  const tooLarge = () => reject(new GatewayError('result-too-large', `The answer is longer than ${maxBytes} bytes`))
  const streamed = incoming.headers['content-type']?.startsWith('text/event-stream') ?? false
  const chunks: Buffer[] = []
  let bytes = 0
  const events = createSseReader({
    maxBytes,
    onTooLong: tooLarge,
    onEvent: ({ event, data }) => {
      if (event === 'message') onEvent?.(data)
    },
  })
  incoming.on('data', (chunk: Buffer) => {
    if (streamed) return events.push(chunk)
    bytes += chunk.length
    if (bytes > maxBytes) return tooLarge()
    chunks.push(chunk)
    count(chunk.length)
  })
  incoming.on('end', () => {
    resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, streamed, body: Buffer.concat(chunks) })
  })
  return promise
}

const neverSent = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|.*CERT.*|ERR_TLS.*|ERR_SSL.*)$/

function toLinkError(error: unknown, { origin }: URL): GatewayError {
  if (error instanceof GatewayError) return error
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'connection closed'
  const sent = !neverSent.test(code)
  const message = sent
    ? `The gateway at ${origin} ended before it answered (${code})`
    : `No gateway answers at ${origin} (${code})`
  return new GatewayError('unreachable', message, {}, { cause: error, reach: sent ? 'sent' : 'unsent' })
}

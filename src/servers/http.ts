import type { Dispatcher } from 'undici'
import { Pool } from 'undici'
import { GatewayError } from '../contract/errors.ts'
import type { HttpServer, SseServer } from '../contract/server.ts'
import { backoffDelay } from '../lib/backoff.ts'
import type { Clock } from '../lib/clock.ts'
import { toVisible } from '../lib/text.ts'
import { sessionHeader } from '../wire/legacy.ts'
import type { Outgoing } from '../wire/peer.ts'
import { createSseReader } from '../wire/sse.ts'
import type { CarrierParts, ServerCarrier } from './carrier.ts'
import { createGuardedConnector, type EgressRules } from './egress.ts'

export type HttpParts = CarrierParts & {
  readonly definition: HttpServer | SseServer
  readonly egress: EgressRules
  readonly clock: Clock
}

type ResponseHeaders = Readonly<Record<string, string | string[] | undefined>>

export const acceptBoth = 'application/json, text/event-stream'
const streamRetry = { first: 1000, most: 60_000, factor: 2 }
/** A server should end the stream of an answered request itself; one that does not is helped. */
const lingerMs = 5000
const maxErrorBody = 64 * 1024

export function createPool(parts: HttpParts, origin: string): Pool {
  return new Pool(origin, {
    connections: 128,
    pipelining: 1,
    connect: createGuardedConnector(parts.egress, parts.definition.timeout.connect),
    headersTimeout: 0, // every wait has a deadline of its own further up
    bodyTimeout: 0,
    allowH2: false,
  })
}

/** Streamable HTTP: one exchange per message, answered in JSON or as a stream of events. */
export function openHttp(parts: HttpParts): ServerCarrier {
  const url = new URL(parts.definition.url)
  const path = `${url.pathname}${url.search}`
  const pool = createPool(parts, url.origin)
  const closing = new AbortController()
  let session: string | undefined

  const headersFor = (own: Readonly<Record<string, string>>, accept: string) => ({
    ...parts.definition.headers,
    ...own,
    accept,
    ...(session === undefined ? {} : { [sessionHeader]: session }),
  })

  function send(message: Outgoing): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const hadSession = session
    const exchange = createExchange(message, {
      maxBytes: parts.maxMessageBytes,
      clock: parts.clock,
      closing: closing.signal,
      onHeaders(status, headers) {
        const given = headers[sessionHeader]
        if (status < 300 && typeof given === 'string' && /^[\x21-\x7e]{1,512}$/.test(given)) session = given
        if (status === 404 && session === hadSession) session = undefined
      },
      onMessage: (body) => parts.onMessage(body, message.id),
      lost: hadSession !== undefined,
      resolve,
      reject,
    })
    const headers = { ...headersFor(message.headers, acceptBoth), 'content-type': 'application/json' }
    try {
      pool.dispatch({ path, method: 'POST', headers, body: message.body }, exchange)
    } catch (error) {
      reject(toLinkError(error, closing.signal.aborted))
    }
    return promise
  }

  /** The standing stream of the older era. Servers may refuse it; one that drops it is asked again, ever more slowly. */
  function listen(own: Readonly<Record<string, string>>, attempt = 1): void {
    if (closing.signal.aborted) return
    let opened = 0
    const again = () => {
      const next = opened > 0 && parts.clock.monotonic() - opened > 10_000 ? 1 : attempt + 1
      parts.clock.after(backoffDelay(next, streamRetry), () => listen(own, next))
    }
    openStream(pool, path, headersFor(own, 'text/event-stream'), {
      maxBytes: parts.maxMessageBytes,
      signal: closing.signal,
      onOpen: () => {
        opened = parts.clock.monotonic()
      },
      // The older era never answers a request here: an origin of 0 matches none.
      onEvent: (event) => parts.onMessage(event.data, 0),
      onEnd: (refused) => {
        if (!refused) again()
      },
    })
  }

  return {
    send,
    listen: (own) => listen(own),
    async endSession(own) {
      if (session === undefined) return
      const headers = headersFor(own, acceptBoth)
      session = undefined
      await pool.request({ path, method: 'DELETE', headers, signal: AbortSignal.timeout(2000) }).then(
        ({ body }) => body.dump(),
        () => {},
      )
    },
    async close() {
      closing.abort()
      await pool.destroy()
    },
  }
}

type ExchangeParts = {
  readonly maxBytes: number
  readonly clock: Clock
  readonly closing: AbortSignal
  /** The request went out under a session, so that a 404 means that the session is lost. */
  readonly lost: boolean
  onHeaders(status: number, headers: ResponseHeaders): void
  onMessage(message: Buffer): void
  resolve(): void
  reject(error: unknown): void
}

/** One POST: hands on what comes back, whatever form it has, and never keeps more than it may. */
function createExchange(message: Outgoing, parts: ExchangeParts): Dispatcher.DispatchHandler {
  let status = 0
  let kind: 'json' | 'events' | 'refusal' | 'nothing' = 'nothing'
  let headers: ResponseHeaders = {}
  let chunks: Buffer[] = []
  let bytes = 0
  let reader: ReturnType<typeof createSseReader> | undefined
  let controller: Dispatcher.DispatchController | undefined
  let cancelLinger: (() => void) | undefined

  const onAbort = () => controller?.abort(new Error('Nobody waits for this answer'))
  const done = () => {
    cancelLinger?.()
    message.signal?.removeEventListener('abort', onAbort)
    parts.closing.removeEventListener('abort', onAbort)
  }
  const fail = (error: unknown) => {
    done()
    parts.reject(error)
    controller?.abort(error instanceof Error ? error : new Error('Ended'))
  }
  const tooLarge = () =>
    fail(new GatewayError('result-too-large', `The answer has more than ${parts.maxBytes} bytes`, { sent: true }))
  return {
    onRequestStart(started) {
      controller = started
      if (message.signal?.aborted || parts.closing.aborted) return onAbort()
      message.signal?.addEventListener('abort', onAbort, { once: true })
      parts.closing.addEventListener('abort', onAbort, { once: true })
      message.sent()
    },
    onResponseStart(_controller, code, received) {
      status = code
      headers = received
      parts.onHeaders(code, received)
      kind = bodyKind(code, received, message.id)
      if (kind !== 'events') return
      reader = createSseReader({
        maxBytes: parts.maxBytes,
        onTooLong: tooLarge,
        onEvent: (event) => {
          if (event.event !== 'message' || event.data.length === 0) return
          parts.onMessage(event.data)
          if (message.id !== undefined && !message.waiting()) cancelLinger ??= parts.clock.after(lingerMs, onAbort)
        },
      })
    },
    onResponseData(_controller, chunk) {
      if (kind === 'nothing') return
      if (reader) return reader.push(chunk)
      bytes += chunk.length
      if (bytes > (kind === 'json' ? parts.maxBytes : maxErrorBody)) return kind === 'json' ? tooLarge() : undefined
      chunks.push(chunk)
    },
    onResponseEnd() {
      done()
      const body = Buffer.concat(chunks)
      chunks = []
      if (kind === 'refusal') return refuse(body)
      if (kind === 'json' && body.length > 0) parts.onMessage(body)
      if (message.waiting()) return parts.reject(silentError())
      parts.resolve()
    },
    onResponseError(_controller, error) {
      done()
      if (!message.waiting()) return parts.resolve()
      parts.reject(toLinkError(error, parts.closing.aborted))
    },
  }

  /** Newer servers put a JSON-RPC error into the body of a refusal: that is an answer like any other. */
  function refuse(body: Buffer): void {
    if (message.id !== undefined && body.includes(`"id":${message.id}`) && body.includes('"error"')) {
      parts.onMessage(body)
      return parts.resolve()
    }
    parts.reject(toStatusError(status, headers, parts.lost))
  }
}

function bodyKind(
  status: number,
  headers: ResponseHeaders,
  id: number | undefined,
): 'json' | 'events' | 'refusal' | 'nothing' {
  const type = String(headers['content-type'] ?? '')
    .split(';')[0]
    ?.trim()
    .toLowerCase()
  const encoding = headers['content-encoding']
  if (status >= 300 || status < 200) return 'refusal'
  if (encoding !== undefined && encoding !== 'identity') return 'refusal' // we asked for none: a bomb, or a broken server
  if (type === 'text/event-stream') return 'events'
  if (id === undefined || status === 202) return 'nothing'
  return type === 'application/json' ? 'json' : 'refusal'
}

function silentError(): GatewayError {
  return new GatewayError('server-broken', 'The server ended its answer without a result', { sent: true })
}

export function toStatusError(status: number, headers: ResponseHeaders, lostSession: boolean): GatewayError {
  const facts = { status, sent: true }
  if (status === 401 || status === 403) {
    return new GatewayError('server-auth', `The server answered ${status}: it wants other credentials`, facts)
  }
  if (status === 404 && lostSession)
    return new GatewayError('session-lost', 'The server has forgotten the session', facts)
  if (status >= 300 && status < 400) {
    const target = toVisible(String(headers.location ?? 'nowhere')).slice(0, 200)
    return new GatewayError('connect-failed', `The server redirects to ${target}; redirects are not followed`, facts)
  }
  if (status === 429 || status === 503) {
    const retryAfter = toRetryAfter(headers['retry-after'])
    const message = `The server answered ${status}: it has too much to do`
    return new GatewayError('limit-exceeded', message, { ...facts, rejected: true, ...(retryAfter && { retryAfter }) })
  }
  if (status < 300) return new GatewayError('server-broken', 'The server answered in a form that is not MCP', facts)
  return new GatewayError('connect-failed', `The server answered with HTTP status ${status}`, facts)
}

/** Seconds, within an hour: a server does not get to park its callers for ever. */
function toRetryAfter(value: string | string[] | undefined): number | undefined {
  const seconds = Number(value)
  return Number.isFinite(seconds) && seconds > 0 ? Math.min(3600, Math.ceil(seconds)) : undefined
}

export function toLinkError(error: unknown, closing: boolean): GatewayError {
  if (error instanceof GatewayError) return error
  if (closing) return new GatewayError('server-unavailable', 'The connection is being closed')
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown'
  const neverSent =
    /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|ERR_TLS.*|CERT.*|.*CERT.*)$/
  if (neverSent.test(code)) {
    return new GatewayError(
      'connect-failed',
      `No connection to the server (${code})`,
      { errno: code, sent: false },
      { cause: error },
    )
  }
  return new GatewayError('server-broken', `The link to the server broke (${code})`, { errno: code }, { cause: error })
}

type StreamParts = {
  readonly maxBytes: number
  readonly signal: AbortSignal
  onOpen(headers: ResponseHeaders): void
  onEvent(event: { event: string; data: Buffer }): void
  /** `refused` is the status with which the server declined, if it did. */
  onEnd(refused: GatewayError | undefined, error?: GatewayError): void
}

/** A long GET that carries events until one side ends it. */
export function openStream(pool: Pool, path: string, headers: Record<string, string>, parts: StreamParts): void {
  let controller: Dispatcher.DispatchController | undefined
  let refused: GatewayError | undefined
  let ended = false
  const onAbort = () => controller?.abort(new Error('The stream is closed'))
  const end = (error?: GatewayError) => {
    if (ended) return
    ended = true
    parts.signal.removeEventListener('abort', onAbort)
    if (!parts.signal.aborted) parts.onEnd(refused, error)
  }
  const reader = createSseReader({
    maxBytes: parts.maxBytes,
    onEvent: parts.onEvent,
    onTooLong: () => controller?.abort(new GatewayError('result-too-large', 'An event has no end')),
  })
  pool.dispatch(
    { path, method: 'GET', headers },
    {
      onRequestStart(started) {
        controller = started
        if (parts.signal.aborted) return onAbort()
        parts.signal.addEventListener('abort', onAbort, { once: true })
      },
      onResponseStart(_controller, status, received) {
        const type = String(received['content-type'] ?? '').toLowerCase()
        if (status === 200 && type.startsWith('text/event-stream')) return parts.onOpen(received)
        refused = toStatusError(status, received, false)
        onAbort()
      },
      onResponseData: (_controller, chunk) => reader.push(chunk),
      onResponseEnd: () => end(),
      onResponseError: (_controller, error) => end(toLinkError(error, false)),
    },
  )
}

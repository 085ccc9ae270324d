import type { HttpServer, SseServer } from '../../contract/server.ts'
import { backoffDelay } from '../../lib/backoff.ts'
import type { Clock } from '../../lib/clock.ts'
import { sessionHeader } from '../../wire/legacy.ts'
import type { Outgoing } from '../../wire/peer.ts'
import { createHttpClient, type HttpClient } from '../http/client.ts'
import type { EgressRules } from '../http/egress.ts'
import { type HttpRequest, toLowerNames } from '../http/request.ts'
import type { CarrierParts, ServerCarrier } from './carrier.ts'
import { openStream } from './event-stream.ts'
import { exchange } from './exchange.ts'
import { type ResumeParts, resumeStream } from './resume.ts'

export type HttpParts = CarrierParts & {
  readonly definition: HttpServer | SseServer
  readonly egress: EgressRules
  readonly clock: Clock
}

/** `missed`: a stream was open before, so notifications may have been lost. */
type Listening = { readonly signal: AbortSignal; readonly attempt: number; readonly missed: boolean }

export const acceptBoth = 'application/json, text/event-stream'
const endSessionMs = 2000
const streamRetry = { first: 1000, most: 60_000, factor: 2 }

export function createClient({ egress, definition, clock }: HttpParts, url: URL): HttpClient {
  return createHttpClient({ url, egress, connectTimeoutMs: definition.timeout.connect, clock })
}

/** Streamable HTTP: one POST per message, answered with JSON or a stream of events. */
export function openHttp(parts: HttpParts): ServerCarrier {
  const url = new URL(parts.definition.url)
  const path = `${url.pathname}${url.search}`
  const client = createClient(parts, url)
  const configured = toLowerNames(parts.definition.headers)
  const closing = new AbortController()
  let session: string | undefined
  let listening = new AbortController()

  const headersFor = (own: Readonly<Record<string, string>>, accept: string) => ({
    ...configured,
    ...own,
    accept,
    ...(session === undefined ? {} : { [sessionHeader]: session }),
  })

  function send(message: Outgoing): Promise<void> {
    const hadSession = session
    const headers = { ...headersFor(message.headers, acceptBoth), 'content-type': 'application/json' }
    return exchange(message, {
      client,
      request: { method: 'POST', path, headers, body: message.body },
      maxBytes: parts.maxMessageBytes,
      clock: parts.clock,
      closing: closing.signal,
      onHeaders(status, received) {
        const given = received.get(sessionHeader)
        if (status < 300 && given !== undefined && /^[\x21-\x7e]{1,512}$/.test(given)) session = given
        if (status === 404 && session === hadSession) session = undefined
      },
      onMessage: (body) => parts.onMessage(body, message.id),
      resume: (place) => resumeStream(message, place, resuming(message)),
      answers: 'here',
      lost: hadSession !== undefined,
    })
  }

  function resuming(message: Outgoing): ResumeParts {
    return {
      client,
      path,
      clock: parts.clock,
      maxBytes: parts.maxMessageBytes,
      closing: closing.signal,
      headers: () => headersFor(message.headers, 'text/event-stream'),
      onMessage: (body) => parts.onMessage(body, message.id),
    }
  }

  /** Every MCP session has its own stream: closes the stream of the previous session. */
  function listenAgain(own: Readonly<Record<string, string>>): void {
    listening.abort()
    listening = new AbortController()
    listen(own, { signal: AbortSignal.any([closing.signal, listening.signal]), attempt: 1, missed: false })
  }

  /** The stream of notifications in the older era. Servers may refuse it. A dropped stream is opened again with backoff. */
  function listen(own: Readonly<Record<string, string>>, state: Listening): void {
    const { signal, attempt, missed } = state
    if (signal.aborted) return
    let opened = 0
    const again = () => {
      const next = opened > 0 && parts.clock.monotonic() - opened > 10_000 ? 1 : attempt + 1
      const resume = () => listen(own, { signal, attempt: next, missed: missed || opened > 0 })
      parts.clock.after(backoffDelay(next, streamRetry), resume)
    }
    openStream(client, path, headersFor(own, 'text/event-stream'), {
      maxBytes: parts.maxMessageBytes,
      signal,
      onOpen: () => {
        opened = parts.clock.monotonic()
        if (missed) parts.onGap()
      },
      // In the older era this stream contains no answers: an origin of 0 matches no request.
      onEvent: (event) => parts.onMessage(event.data, 0),
      onEnd: (refused) => {
        if (!refused || Number(refused.details.status) >= 500) again()
      },
    })
  }

  return {
    send,
    listen: listenAgain,
    async endSession(own) {
      if (session === undefined) return
      const headers = headersFor(own, acceptBoth)
      session = undefined
      await end(client, { method: 'DELETE', path, headers }, parts.clock)
    },
    async close() {
      closing.abort()
      await client.close()
    },
  }
}

/** Sends a request, waits for its end and ignores the answer. */
function end(client: HttpClient, request: HttpRequest, clock: Clock): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const ignored = { onStart() {}, onHead() {}, onData() {} }
  const abort = client.send(request, { ...ignored, onEnd: resolve, onError: () => resolve() })
  const cancel = clock.after(endSessionMs, () => abort(new Error(`No answer within ${endSessionMs} ms`)))
  return promise.finally(cancel)
}

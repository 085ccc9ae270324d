import { Pool } from 'undici'
import type { HttpServer, SseServer } from '../contract/server.ts'
import { backoffDelay } from '../lib/backoff.ts'
import type { Clock } from '../lib/clock.ts'
import { sessionHeader } from '../wire/legacy.ts'
import type { Outgoing } from '../wire/peer.ts'
import type { CarrierParts, ServerCarrier } from './carrier.ts'
import { createGuardedConnector, type EgressRules } from './egress.ts'
import { openStream } from './event-stream.ts'
import { createExchange } from './exchange.ts'
import { toLinkError } from './http-errors.ts'

export type HttpParts = CarrierParts & {
  readonly definition: HttpServer | SseServer
  readonly egress: EgressRules
  readonly clock: Clock
}

/** `missed`: a stream was open before, so that something may have been said in between. */
type Listening = { readonly signal: AbortSignal; readonly attempt: number; readonly missed: boolean }

export const acceptBoth = 'application/json, text/event-stream'
const streamRetry = { first: 1000, most: 60_000, factor: 2 }

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
  let listening = new AbortController()

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
      answers: 'here',
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

  /** A new session has a stream of its own: the one of the session before is let go. */
  function listenAnew(own: Readonly<Record<string, string>>): void {
    listening.abort()
    listening = new AbortController()
    listen(own, { signal: AbortSignal.any([closing.signal, listening.signal]), attempt: 1, missed: false })
  }

  /** The standing stream of the older era. Servers may refuse it; one that drops it is asked again, ever more slowly. */
  function listen(own: Readonly<Record<string, string>>, state: Listening): void {
    const { signal, attempt, missed } = state
    if (signal.aborted) return
    let opened = 0
    const again = () => {
      const next = opened > 0 && parts.clock.monotonic() - opened > 10_000 ? 1 : attempt + 1
      const resume = () => listen(own, { signal, attempt: next, missed: missed || opened > 0 })
      parts.clock.after(backoffDelay(next, streamRetry), resume)
    }
    openStream(pool, path, headersFor(own, 'text/event-stream'), {
      maxBytes: parts.maxMessageBytes,
      signal,
      onOpen: () => {
        opened = parts.clock.monotonic()
        if (missed) parts.onGap()
      },
      // The older era never answers a request here: an origin of 0 matches none.
      onEvent: (event) => parts.onMessage(event.data, 0),
      onEnd: (refused) => {
        if (!refused || Number(refused.details.status) >= 500) again()
      },
    })
  }

  return {
    send,
    listen: listenAnew,
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

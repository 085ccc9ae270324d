import { GatewayError } from '../../contract/errors.ts'
import { type Clock, sleep } from '../../lib/clock.ts'
import { onAbort } from '../../lib/signals.ts'
import type { Outgoing } from '../../wire/peer.ts'
import type { StreamPlace } from '../../wire/sse.ts'
import type { HttpClient } from '../http/client.ts'
import { openStream } from './event-stream.ts'

export type ResumeParts = {
  readonly client: HttpClient
  readonly path: string
  readonly clock: Clock
  readonly maxBytes: number
  readonly closing: AbortSignal
  headers(): Record<string, string>
  onMessage(message: Buffer): void
}

const usualWaitMs = 1000
const longestWaitMs = 60_000
/** Number of streams in a row without an event after which the gateway gives up. */
const maxFruitless = 5

/**
 * A server may end a stream before the answer is ready, so that no TCP connection stays open during a long call.
 * The next stream continues after the last event, after the pause that the server requested.
 */
export async function resumeStream(message: Outgoing, ended: StreamPlace, parts: ResumeParts): Promise<void> {
  const abandoned = new AbortController()
  message.onAbandoned(() => abandoned.abort())
  const signal = AbortSignal.any([parts.closing, abandoned.signal])
  let place = ended
  let fruitless = 0
  while (message.waiting()) {
    if (fruitless >= maxFruitless) throw noResult()
    await sleep(parts.clock, Math.min(place.retryMs ?? usualWaitMs, longestWaitMs), signal)
    const before = place
    place = await follow(message, place, signal, parts)
    fruitless = place === before ? fruitless + 1 : 0
  }
}

/** Opens one more stream and waits for its end. Resolves with the place where it ended. */
function follow(message: Outgoing, from: StreamPlace, signal: AbortSignal, parts: ResumeParts): Promise<StreamPlace> {
  const { promise, resolve, reject } = Promise.withResolvers<StreamPlace>()
  const enough = new AbortController()
  const headers = { ...parts.headers(), ...(from.id !== undefined && { 'last-event-id': from.id }) }
  let place = from
  const unlink = onAbort(signal, () => reject(noResult()))
  openStream(parts.client, parts.path, headers, {
    maxBytes: parts.maxBytes,
    signal: AbortSignal.any([signal, enough.signal]),
    onOpen() {},
    onPlace(reached) {
      place = { ...place, ...reached }
    },
    onEvent(event) {
      parts.onMessage(event.data)
      if (message.waiting()) return
      resolve(place)
      enough.abort() // the request is answered; further messages belong to the stream of notifications
    },
    onEnd(refused) {
      enough.abort()
      if (refused) return reject(noResult())
      resolve(place)
    },
  })
  return promise.finally(unlink)
}

function noResult(): GatewayError {
  const message = 'The server ended its answer without a result'
  return new GatewayError('server-broken', message, { dropped: true }, { reach: 'sent' })
}

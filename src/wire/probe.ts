import { GatewayError } from '../contract/errors.ts'
import { type Clock, sleep } from '../lib/clock.ts'
import type { ServerCodec, ServerFacts } from './codec.ts'

/** How long the first request of the newer era may stay unanswered before the older era is tried as well. */
const patienceMs = 1500

/**
 * For programs whose era is not known: tries the newer era, and the older one on the same pipe if the first is refused or not
 * answered. A program that starts slowly gets both requests, and its answer decides.
 */
export function createProbingCodec(modern: ServerCodec, legacy: ServerCodec, clock: Clock): ServerCodec {
  let current = modern
  return {
    get era() {
      return current.era
    },
    get cancelsByClosing() {
      return current.cancelsByClosing
    },
    get liveness() {
      return current.liveness
    },
    shape: (params, own) => current.shape(params, own),
    headers: (method, params, mirrored) => current.headers(method, params, mirrored),
    async open(peer, options) {
      const stop = new AbortController()
      const signal = AbortSignal.any([options.signal, stop.signal])
      const asked = modern.open(peer, { ...options, signal })
      const refused = asked.then(
        () => new Promise<void>(() => {}),
        () => {},
      )
      const early = await Promise.race([asked.catch(() => undefined), refused, sleep(clock, patienceMs, signal)])
      if (early) return early
      current = legacy
      const facts = await firstOf(legacy.open(peer, { ...options, signal }), asked)
      current = facts.era === 'modern' ? modern : legacy
      stop.abort()
      return facts
    },
  }
}

/** Uses the answer of the older era, also an error, unless the newer era was answered. */
async function firstOf(older: Promise<ServerFacts>, newer: Promise<ServerFacts>): Promise<ServerFacts> {
  try {
    return await Promise.any([older, newer])
  } catch (error) {
    const failures: readonly unknown[] = error instanceof AggregateError ? error.errors : [error]
    throw failures[0] ?? new GatewayError('server-broken', 'The server answered in neither era')
  }
}

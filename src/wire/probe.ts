import { GatewayError } from '../contract/errors.ts'
import { type Clock, sleep } from '../lib/clock.ts'
import type { ServerCodec, ServerFacts } from './codec.ts'

/** How long the newer era's first question may stay unanswered before the older one is asked beside it. */
const patienceMs = 1500

/**
 * For programs whose era is not known yet: asks in the newer era, and in the older one on the same pipe if that is
 * refused or left unanswered. A program that takes long to start is asked both, and decides by what it answers.
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

/** The older era's answer counts, also as an error, unless the newer one has been answered after all. */
async function firstOf(older: Promise<ServerFacts>, newer: Promise<ServerFacts>): Promise<ServerFacts> {
  try {
    return await Promise.any([older, newer])
  } catch (error) {
    const failures: readonly unknown[] = error instanceof AggregateError ? error.errors : [error]
    throw failures[0] ?? new GatewayError('server-broken', 'The server answered neither era')
  }
}

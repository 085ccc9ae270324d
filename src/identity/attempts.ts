import { GatewayError } from '../contract/errors.ts'
import type { Clock } from '../lib/clock.ts'

/** Limits sign-in attempts, so that passwords cannot be guessed by trying. */
export type Attempts = {
  /**
   * Records an attempt. Call it before the password is compared, because parallel attempts would otherwise not be
   * limited. Throws `limit-exceeded` while this name or address must wait, whether the name exists or not.
   */
  begin(name: string, address: string): { succeeded(): void }
}

/**
 * Attempts without a delay. Each further attempt doubles the delay. The limit per name is high, so that one machine
 * cannot lock a user out.
 */
const free = { pair: 5, address: 30, name: 100 } as const
const longest = 15 * 60_000
const forgetAfter = 60 * 60_000
const mostKnown = 20_000

type Count = { tries: number; until: number; last: number }

export function createAttempts(clock: Clock): Attempts {
  const counts = new Map<string, Count>()

  function find(key: string, now: number): Count {
    const known = counts.get(key)
    return known && now - known.last < forgetAfter ? known : { tries: 0, until: 0, last: now }
  }

  function count(key: string, limit: number, now: number): void {
    const { tries } = find(key, now)
    const over = tries + 1 - limit
    const until = over >= 0 ? now + Math.min(longest, 1000 * 2 ** Math.min(over, 20)) : 0
    counts.delete(key)
    counts.set(key, { tries: tries + 1, until, last: now })
    const [oldest] = counts.keys()
    if (oldest !== undefined && counts.size > mostKnown) counts.delete(oldest)
  }

  return {
    begin(name, address) {
      const now = clock.now()
      const keys = [
        { key: `pair ${address} ${name}`, limit: free.pair },
        { key: `address ${address}`, limit: free.address },
        { key: `name ${name}`, limit: free.name },
      ]
      const until = Math.max(...keys.map(({ key }) => find(key, now).until))
      if (until > now) {
        const retryAfter = Math.ceil((until - now) / 1000)
        throw new GatewayError('limit-exceeded', `Too many sign-in attempts; try again in ${retryAfter} s`, {
          retryAfter,
        })
      }
      for (const { key, limit } of keys) count(key, limit, now)
      return {
        succeeded() {
          const [pair, ...others] = keys
          if (pair) counts.delete(pair.key)
          for (const { key } of others) {
            const known = counts.get(key)
            if (known) counts.set(key, { ...known, tries: known.tries - 1, until: 0 })
          }
        },
      }
    },
  }
}

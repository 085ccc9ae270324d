import { GatewayError } from '../contract/errors.ts'
import { type Principal, toPrincipalKey } from '../contract/principal.ts'
import type { Clock } from '../lib/clock.ts'
import { countRate, createMeter, isIdle, type Meter, waitForRate } from '../lib/meter.ts'
import { createQuietMap } from '../lib/quiet-map.ts'
import type { ConfigStore } from './config.ts'

type Parts = { readonly config: Pick<ConfigStore, 'current'>; readonly clock: Pick<Clock, 'monotonic'> }

/** Factor for the admin token and administrators: they configure whole gateways with scripts. */
const forAdministrators = 10

/**
 * Limits the changes of one principal, because every gateway on the database reads each change again. Throws
 * `limit-exceeded`.
 */
export function createChangeLimit({ config, clock }: Parts): (principal: Principal) => void {
  const meters = createQuietMap<Meter>(isIdle)
  return (principal) => {
    const { changesPerMinute } = config.current().limits
    const most = principal.role === 'administrator' ? changesPerMinute * forAdministrators : changesPerMinute
    const [key, now] = [toPrincipalKey(principal), clock.monotonic()]
    const meter = meters.find(key) ?? meters.add(key, createMeter(), now)
    const wait = Math.ceil(waitForRate(meter, most, now))
    if (wait > 0) throw exceeded(key, most, wait)
    countRate(meter, now)
  }
}

function exceeded(who: string, most: number, wait: number): GatewayError {
  const retryAfter = Math.ceil(wait / 1000)
  const message = `${who} made ${most} changes within a minute, the most that is allowed; try again in ${retryAfter} s`
  return new GatewayError('limit-exceeded', message, {
    limit: 'changesPerMinute',
    most,
    retryAfter,
    retryAfterMs: wait,
  })
}

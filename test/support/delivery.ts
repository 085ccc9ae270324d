import type { ServerResponse } from 'node:http'
import { systemClock } from '../../src/lib/clock.ts'
import { createDelivery, type Delivery } from '../../src/lib/delivery.ts'

/** For tests that do not test unread answers. */
export function unboundedDelivery(response: ServerResponse): Delivery {
  return createDelivery({
    response,
    account: { buffered: () => 0, hasRoom: () => true, add() {} },
    clock: systemClock,
    patience: 60_000,
  })
}

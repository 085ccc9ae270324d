import { toGatewayError } from '../contract/errors.ts'
import { type BackoffSettings, backoffDelay } from '../lib/backoff.ts'
import { type Clock, toIso } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'

/** The state of one anchor target, for `status` and `doctor`. */
export type DeliveryStatus = {
  readonly target: string
  readonly waiting: number
  readonly lost: number
  readonly deliveredAt?: string
  readonly error?: string
}

export type Delivery = {
  /** Does not wait. If too many lines are waiting, the oldest is dropped: a later anchor covers the same entries. */
  send(line: string): void
  /** Resolves after the current attempt. True if all lines were delivered. */
  settled(): Promise<boolean>
  status(): DeliveryStatus
  close(): void
}

export type DeliveryParts = {
  /** The name that is shown to people. */
  readonly target: string
  deliver(line: string, signal: AbortSignal): Promise<void>
  readonly clock: Clock
  readonly log: Log
  readonly backoff?: BackoffSettings
}

const mostWaiting = 100
const usualBackoff: BackoffSettings = { first: 1000, most: 300_000, factor: 2 }

/** Delivers anchors to one file or webhook, in order, with retries. Callers never wait for it. */
export function createDelivery({ target, deliver, clock, log, backoff = usualBackoff }: DeliveryParts): Delivery {
  const ending = new AbortController()
  const waiting: string[] = []
  let attempt = 0
  let lost = 0
  let error: string | undefined
  let deliveredAt: number | undefined
  let working: Promise<void> | undefined
  let cancelRetry: (() => void) | undefined

  return {
    send(line) {
      waiting.push(line)
      if (waiting.length > mostWaiting) {
        waiting.shift()
        lost++
      }
      if (!cancelRetry) work()
    },
    async settled() {
      await working
      return waiting.length === 0
    },
    status: () => ({
      target,
      waiting: waiting.length,
      lost,
      ...(deliveredAt !== undefined && { deliveredAt: toIso(deliveredAt) }),
      ...(error !== undefined && { error }),
    }),
    close() {
      ending.abort()
      cancelRetry?.()
    },
  }

  function work(): void {
    working ??= deliverAll().finally(() => {
      working = undefined
    })
  }

  async function deliverAll(): Promise<void> {
    for (let line = waiting[0]; line !== undefined && !ending.signal.aborted; line = waiting[0]) {
      try {
        await deliver(line, ending.signal)
      } catch (failure) {
        return retryLater(toGatewayError(failure).message)
      }
      if (error !== undefined) log.info({ target }, 'anchors are delivered again')
      error = undefined
      attempt = 0
      deliveredAt = clock.now()
      if (waiting[0] === line) waiting.shift()
    }
  }

  function retryLater(reason: string): void {
    if (ending.signal.aborted) return
    if (error === undefined) log.warn({ target, reason }, 'an anchor could not be delivered; retrying')
    error = reason
    attempt++
    cancelRetry = clock.after(backoffDelay(attempt, backoff), () => {
      cancelRetry = undefined
      work()
    })
  }
}

import { type GatewayError, toGatewayError } from '../contract/errors.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import type { Storage } from '../storage/storage.ts'
import type { TakenDelivery } from '../storage/tables/deliveries.ts'
import type { Endpoints } from './endpoints.ts'
import type { Message } from './sending.ts'

export type SenderSettings = {
  /** Pauses between the attempts of one delivery, in milliseconds. There is one more attempt than pauses. */
  readonly pauses: readonly number[]
  /** Timeout of one attempt, in milliseconds. */
  readonly attemptMs: number
  /** Milliseconds between searches for due deliveries, also those of gateways that died. */
  readonly lookEvery: number
  /** The most parallel attempts per endpoint, so that a slow endpoint does not delay the others. */
  readonly perEndpoint: number
}

export type SenderParts = {
  readonly deliveries: Storage['deliveries']
  readonly endpoints: Pick<Endpoints, 'ready' | 'markGone'>
  send(endpoint: string, message: Message, signal: AbortSignal): Promise<number>
  mask(text: string): string
  readonly settings: SenderSettings
  readonly clock: Clock
  readonly log: Log
}

/** Sends due deliveries until each is delivered or has failed. */
export type Sender = {
  /** Searches for due deliveries now. */
  wake(): void
  close(): Promise<void>
}

/** Milliseconds that a stopping gateway waits for running attempts. Aborted deliveries are sent again later. */
const stopTimeoutMs = 2000
/** Spreads retries, so that not all deliveries reach one machine at the same time. */
const jitter = 0.2

export function createSender({ deliveries, endpoints, send, mask, settings, clock, log }: SenderParts): Sender {
  const ending = new AbortController()
  const running = new Map<string, Set<Promise<void>>>()
  const retries = new Set<() => void>()
  let searching: Promise<void> | undefined
  let again = false
  let closed = false
  let cancelSearch = clock.after(settings.lookEvery, searchRegularly)

  return {
    wake,
    async close() {
      closed = true
      cancelSearch()
      for (const cancel of retries) cancel()
      await searching
      const cancel = clock.after(stopTimeoutMs, () => ending.abort())
      await Promise.all([...running.values()].flatMap((attempts) => [...attempts]))
      cancel()
    },
  }

  function searchRegularly(): void {
    cancelSearch = clock.after(settings.lookEvery, searchRegularly)
    wake()
  }

  /** Runs one search at a time. A call during a search starts another search after it. */
  function wake(): void {
    if (closed) return
    again = searching !== undefined
    searching ??= searchDue()
      .catch((error: unknown) => log.debug({ code: toGatewayError(error).code }, 'deliveries could not be read'))
      .finally(() => {
        searching = undefined
        if (again) wake()
      })
  }

  async function searchDue(): Promise<void> {
    await Promise.all(endpoints.ready().map(takeDue))
  }

  async function takeDue(endpoint: string): Promise<void> {
    const attempts = running.get(endpoint) ?? new Set()
    running.set(endpoint, attempts)
    const free = settings.perEndpoint - attempts.size
    if (free <= 0) return
    const due = await deliveries.due(endpoint, free)
    // A delivery that cannot be claimed must not delay the others.
    const taken = await Promise.all(due.map((id) => deliveries.take(id).catch(() => undefined)))
    for (const delivery of taken.filter((each) => each !== undefined)) {
      const attempt = deliver(delivery).finally(() => {
        attempts.delete(attempt)
        wake()
      })
      attempts.add(attempt)
    }
  }

  async function deliver(delivery: TakenDelivery): Promise<void> {
    const at = clock.now()
    const limit = new AbortController()
    const cancel = clock.after(settings.attemptMs, () => limit.abort())
    try {
      const status = await send(delivery.endpoint, delivery, AbortSignal.any([ending.signal, limit.signal]))
      await deliveries.end(delivery.id, { at, status, next: 'delivered' })
    } catch (error) {
      if (ending.signal.aborted) await deliveries.putBack(delivery.id)
      else await fail(delivery, at, toGatewayError(error))
    } finally {
      cancel()
    }
  }

  async function fail(
    { id, endpoint, type, attempts }: TakenDelivery,
    at: number,
    failure: GatewayError,
  ): Promise<void> {
    const status = toStatus(failure)
    const error = mask(failure.message)
    if (status === gone) {
      endpoints.markGone(endpoint)
      log.warn({ endpoint }, 'a webhook answered 410 Gone: nothing is sent to it until its entry changes')
    }
    const pause = status === gone ? undefined : settings.pauses[attempts]
    if (pause === undefined) {
      log.warn({ endpoint, type, delivery: id, reason: error }, 'a delivery failed and will not be retried')
      return deliveries.end(id, { at, status, error, next: 'failed' })
    }
    const delay = Math.round(pause * (1 + jitter * Math.random()))
    await deliveries.end(id, { at, status, error, next: clock.now() + delay })
    const cancel = clock.after(delay, () => {
      retries.delete(cancel)
      wake()
    })
    retries.add(cancel)
  }
}

const gone = 410

export function toStatus({ details }: GatewayError): number | undefined {
  return typeof details.status === 'number' ? details.status : undefined
}

import { type GatewayError, toGatewayError } from '../contract/errors.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import type { Storage } from '../storage/storage.ts'
import type { TakenDelivery } from '../storage/tables/deliveries.ts'
import type { Endpoints } from './endpoints.ts'
import type { Message } from './sending.ts'

export type SenderSettings = {
  /** Milliseconds between the attempts of one delivery; there is one attempt more than there are pauses. */
  readonly pauses: readonly number[]
  /** Milliseconds for one attempt. */
  readonly attemptMs: number
  /** Milliseconds between looks for what others left. */
  readonly lookEvery: number
  /** Attempts to one endpoint at the same time; each endpoint has its own, so that a slow one holds up nobody else. */
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

/** Takes what is due, and sends it until it is taken or given up. */
export type Sender = {
  /** There may be something to do. */
  wake(): void
  close(): Promise<void>
}

/** How long a gateway that stops waits for attempts under way: what is cut off is sent again. */
const farewellMs = 2000
/** So many endpoints must not return to one machine at once. */
const jitter = 0.2

export function createSender({ deliveries, endpoints, send, mask, settings, clock, log }: SenderParts): Sender {
  const ending = new AbortController()
  const underWay = new Map<string, Set<Promise<void>>>()
  const retries = new Set<() => void>()
  let looking: Promise<void> | undefined
  let again = false
  let closed = false
  let cancelLook = clock.after(settings.lookEvery, lookRegularly)

  return {
    wake,
    async close() {
      closed = true
      cancelLook()
      for (const cancel of retries) cancel()
      await looking
      const cancel = clock.after(farewellMs, () => ending.abort())
      await Promise.all([...underWay.values()].flatMap((attempts) => [...attempts]))
      cancel()
    },
  }

  function lookRegularly(): void {
    cancelLook = clock.after(settings.lookEvery, lookRegularly)
    wake()
  }

  /** One look at a time; a call during one makes another. */
  function wake(): void {
    if (closed) return
    again = looking !== undefined
    looking ??= look()
      .catch((error: unknown) => log.debug({ code: toGatewayError(error).code }, 'deliveries could not be read'))
      .finally(() => {
        looking = undefined
        if (again) wake()
      })
  }

  async function look(): Promise<void> {
    await Promise.all(endpoints.ready().map(takeDue))
  }

  async function takeDue(endpoint: string): Promise<void> {
    const attempts = underWay.get(endpoint) ?? new Set()
    underWay.set(endpoint, attempts)
    const free = settings.perEndpoint - attempts.size
    if (free <= 0) return
    const due = await deliveries.due(endpoint, free)
    // One that cannot be taken must not keep those back that were.
    const taken = await Promise.all(due.map((id) => deliveries.take(id).catch(() => undefined)))
    for (const delivery of taken.filter((each) => each !== undefined)) {
      const attempt = carry(delivery).finally(() => {
        attempts.delete(attempt)
        wake()
      })
      attempts.add(attempt)
    }
  }

  async function carry(delivery: TakenDelivery): Promise<void> {
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
      log.warn({ endpoint }, 'a webhook answered that it is gone: it gets nothing until its entry changes')
    }
    const pause = status === gone ? undefined : settings.pauses[attempts]
    if (pause === undefined) {
      log.warn({ endpoint, type, delivery: id, reason: error }, 'a delivery was given up')
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

import { toGatewayError } from '../contract/errors.ts'
import { type EventName, type EventTable, eventNames } from '../contract/events.ts'
import type { Clock } from '../lib/clock.ts'
import type { Emitter } from '../lib/emitter.ts'
import type { Log } from '../lib/log.ts'
import type { NewDelivery } from '../storage/tables/deliveries.ts'
import { isElsewhere, type ReceivedEvent } from './message.ts'

export type IntakeParts = {
  readonly events: Emitter<EventTable>
  subscribed(event: EventName): readonly string[]
  toDeliveries(received: ReceivedEvent): NewDelivery[]
  add(deliveries: readonly NewDelivery[]): Promise<void>
  /** This number of deliveries is stored and can be sent. */
  onAdded(count: number): void
  onDropped(endpoints: readonly string[]): void
  readonly most: number
  readonly clock: Clock
  readonly log: Log
}

/** Stores events as deliveries in the background. If too many wait, the oldest are dropped. */
export type Intake = {
  /** Listens only to events that an endpoint subscribes to. */
  sync(): void
  close(): Promise<void>
}

const perCommit = 100
const retryMs = 1000

export function createIntake(parts: IntakeParts): Intake {
  const { events, subscribed, toDeliveries, add, onAdded, onDropped, most, clock, log } = parts
  const stops = new Map<EventName, () => void>()
  const incoming: ReceivedEvent[] = []
  let writing: Promise<void> | undefined
  let cancelRetry: (() => void) | undefined
  let closed = false

  return {
    sync() {
      for (const name of closed ? [] : eventNames) {
        const wanted = subscribed(name).length > 0
        if (wanted && !stops.has(name)) stops.set(name, listen(name))
        if (!wanted) stop(name)
      }
    },
    async close() {
      closed = true
      for (const name of eventNames) stop(name)
      cancelRetry?.()
      await writing
      await write().catch(() => {})
      if (incoming.length > 0) log.error({ lost: incoming.length }, 'events were lost: they could not be stored')
    },
  }

  function listen<Name extends EventName>(name: Name): () => void {
    return events.on(name, (event) => receive({ name, event, at: clock.now() } as ReceivedEvent)) // the name fits the event
  }

  function stop(name: EventName): void {
    stops.get(name)?.()
    stops.delete(name)
  }

  function receive(received: ReceivedEvent): void {
    if (isElsewhere(received)) return
    incoming.push(received)
    const dropped = incoming.length > most ? incoming.shift() : undefined
    if (dropped) onDropped(subscribed(dropped.name))
    if (!cancelRetry) begin()
  }

  function begin(): void {
    writing ??= write()
      .catch((error: unknown) => {
        log.warn(
          { code: toGatewayError(error).code, waiting: incoming.length },
          'events could not be stored; trying again',
        )
        cancelRetry = clock.after(retryMs, () => {
          cancelRetry = undefined
          begin()
        })
      })
      .finally(() => {
        writing = undefined
      })
  }

  async function write(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve)) // does not delay the emitter, and batches events of the same tick
    while (incoming.length > 0) {
      const some = incoming.splice(0, perCommit)
      const deliveries = some.flatMap(toDeliveries)
      try {
        if (deliveries.length > 0) await add(deliveries)
      } catch (error) {
        incoming.unshift(...some)
        throw error
      }
      onAdded(deliveries.length)
    }
  }
}

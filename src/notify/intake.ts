import { toGatewayError } from '../contract/errors.ts'
import { type EventName, type EventTable, eventNames } from '../contract/events.ts'
import type { Clock } from '../lib/clock.ts'
import type { Emitter } from '../lib/emitter.ts'
import type { Log } from '../lib/log.ts'
import type { NewDelivery } from '../storage/tables/deliveries.ts'
import { type Heard, isElsewhere } from './message.ts'

export type IntakeParts = {
  readonly events: Emitter<EventTable>
  subscribed(event: EventName): readonly string[]
  toDeliveries(heard: Heard): NewDelivery[]
  add(deliveries: readonly NewDelivery[]): Promise<void>
  /** So many are durable now, and can be sent. */
  onAdded(count: number): void
  onDropped(endpoints: readonly string[]): void
  readonly most: number
  readonly clock: Clock
  readonly log: Log
}

/** From an event to a row. Whoever emits waits for nothing; with too many the oldest go. */
export type Intake = {
  /** Listens to exactly the events that somebody wants. */
  sync(): void
  close(): Promise<void>
}

const perCommit = 100
const againMs = 1000

export function createIntake(parts: IntakeParts): Intake {
  const { events, subscribed, toDeliveries, add, onAdded, onDropped, most, clock, log } = parts
  const stops = new Map<EventName, () => void>()
  const incoming: Heard[] = []
  let writing: Promise<void> | undefined
  let cancelAgain: (() => void) | undefined
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
      cancelAgain?.()
      await writing
      await write().catch(() => {})
      if (incoming.length > 0) log.error({ lost: incoming.length }, 'events were not sent: they could not be written')
    },
  }

  function listen<Name extends EventName>(name: Name): () => void {
    return events.on(name, (event) => hear({ name, event, at: clock.now() } as Heard)) // one of the table, by its name
  }

  function stop(name: EventName): void {
    stops.get(name)?.()
    stops.delete(name)
  }

  function hear(heard: Heard): void {
    if (isElsewhere(heard)) return
    incoming.push(heard)
    const dropped = incoming.length > most ? incoming.shift() : undefined
    if (dropped) onDropped(subscribed(dropped.name))
    if (!cancelAgain) begin()
  }

  function begin(): void {
    writing ??= write()
      .catch((error: unknown) => {
        log.warn({ code: toGatewayError(error).code, waiting: incoming.length }, 'events wait for the store')
        cancelAgain = clock.after(againMs, () => {
          cancelAgain = undefined
          begin()
        })
      })
      .finally(() => {
        writing = undefined
      })
  }

  async function write(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve)) // after whoever emitted, and together with what else happened
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

import type { EventName, EventTable } from '../contract/events.ts'
import type { Emitter } from '../lib/emitter.ts'

/** One event with its place in the order of this instance's events. */
export type LoggedEvent = {
  [Name in EventName]: { readonly number: number; readonly name: Name; readonly event: EventTable[Name] }
}[EventName]

/** The last events, for whoever lost the line for a moment. */
export type EventLog = {
  /** `instance-number`, as streams tell it. */
  toId(event: LoggedEvent): string
  /** What came after that id; undefined if that cannot be told any more: then everything has to be read again. */
  since(id: string): readonly LoggedEvent[] | undefined
  listen(listener: (event: LoggedEvent) => void): () => void
  close(): void
}

const mostKept = 2000

export function createEventLog(instance: string, events: Emitter<EventTable>, names: readonly EventName[]): EventLog {
  const listeners = new Set<(event: LoggedEvent) => void>()
  let kept: LoggedEvent[] = []
  let number = 0
  const stops = names.map((name) =>
    events.on(name, (event) => add({ number: ++number, name, event: toKept(event) } as LoggedEvent)),
  )

  function add(event: LoggedEvent): void {
    kept.push(event)
    if (kept.length > 2 * mostKept) kept = kept.slice(-mostKept)
    for (const listener of listeners) listener(event)
  }

  return {
    toId: (event) => `${instance}-${event.number}`,
    since(id) {
      const [, of, text] = /^(.+)-(\d{1,15})$/.exec(id) ?? []
      const seen = Number(text)
      const oldest = kept[0]?.number ?? number + 1
      if (of !== instance || seen > number || seen < oldest - 1) return undefined
      return kept.filter((event) => event.number > seen)
    },
    listen(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    close() {
      for (const stop of stops) stop()
      listeners.clear()
    },
  }
}

/** So many of them are kept that long arguments would fill the memory: those of a call are read with the call. */
function toKept(event: EventTable[EventName]): EventTable[EventName] {
  if (!('call' in event) || typeof event.call !== 'object') return event
  const { arguments: _arguments, ...call } = event.call
  return { ...event, call: { ...call, arguments: undefined } }
}

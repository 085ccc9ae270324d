import type { EventName, EventTable } from '../contract/events.ts'
import type { Emitter } from '../lib/emitter.ts'

/** One event with its place in the order of this instance's events. */
export type LoggedEvent = {
  [Name in EventName]: { readonly number: number; readonly name: Name; readonly event: EventTable[Name] }
}[EventName]

/** The last events, for whoever lost the line for a moment. Until somebody listens nothing is kept: calls pay nothing for it. */
export type EventLog = {
  /** `instance-number`, as streams tell it. */
  toId(event: LoggedEvent): string
  /** What came after that id; undefined if that cannot be told any more: then everything has to be read again. */
  since(id: string): readonly LoggedEvent[] | undefined
  listen(listener: (event: LoggedEvent) => void): () => void
  close(): void
}

const mostKept = 2000
/** Of the arguments of questions, which may be long. */
const mostBytes = 16 * 1024 * 1024

export function createEventLog(instance: string, events: Emitter<EventTable>, names: readonly EventName[]): EventLog {
  const listeners = new Set<(event: LoggedEvent) => void>()
  let kept: LoggedEvent[] = []
  let bytes = 0
  let number = 0
  let stops: (() => void)[] | undefined

  function begin(): void {
    stops ??= names.map((name) =>
      events.on(name, (event) => add({ number: ++number, name, event: toKept(event) } as LoggedEvent)),
    )
  }

  function add(event: LoggedEvent): void {
    kept.push(event)
    bytes += weigh(event)
    if (kept.length > 2 * mostKept || bytes > mostBytes) forget()
    for (const listener of listeners) listener(event)
  }

  function forget(): void {
    kept = kept.slice(-mostKept)
    bytes = kept.reduce((sum, event) => sum + weigh(event), 0)
    while (bytes > mostBytes / 2 && kept.length > 1) bytes -= weigh(kept.shift())
  }

  return {
    toId: (event) => `${instance}-${event.number}`,
    since(id) {
      begin()
      const [, of, text] = /^(.+)-(\d{1,15})$/.exec(id) ?? []
      const seen = Number(text)
      const oldest = kept[0]?.number ?? number + 1
      if (of !== instance || seen > number || seen < oldest - 1) return undefined
      return kept.filter((event) => event.number > seen)
    },
    listen(listener) {
      begin()
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    close() {
      for (const stop of stops ?? []) stop()
      listeners.clear()
    },
  }
}

/** Only questions weigh; they are few. */
function weigh(logged: LoggedEvent | undefined): number {
  if (logged?.name !== 'question-asked' && logged?.name !== 'question-answered') return 0
  const { arguments: given = null, input, meta } = logged.event.approval
  return JSON.stringify([given, input, meta]).length
}

/** So many of them are kept that long arguments would fill the memory: those of a call are read with the call. */
function toKept(event: EventTable[EventName]): EventTable[EventName] {
  if (!('call' in event) || typeof event.call !== 'object') return event
  const { arguments: _arguments, meta: _meta, ...call } = event.call
  return { ...event, call: { ...call, arguments: undefined } }
}

import type { EventName, EventTable } from '../contract/events.ts'
import type { Emitter } from '../lib/emitter.ts'

/** One event with its sequence number in this instance. */
export type LoggedEvent = {
  [Name in EventName]: { readonly number: number; readonly name: Name; readonly event: EventTable[Name] }
}[EventName]

/** The last events, for streams that reconnect. Nothing is kept before the first listener, so calls cost nothing. */
export type EventLog = {
  /** `instance-number`, the event id in streams. */
  toId(event: LoggedEvent): string
  /** The events after that id. Undefined if they are not kept any more: the reader must load everything again. */
  since(id: string): readonly LoggedEvent[] | undefined
  listen(listener: (event: LoggedEvent) => void): () => void
  close(): void
}

const mostKept = 2000
/** The most bytes of approval arguments, which may be long. */
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

/** The size of approvals. Other events are small and not measured. */
function weigh(logged: LoggedEvent | undefined): number {
  if (logged?.name !== 'approval-requested' && logged?.name !== 'approval-answered') return 0
  const { arguments: given = null, input, meta } = logged.event.approval
  return JSON.stringify([given, input, meta]).length
}

/** Removes the arguments of calls, which could fill the memory. Readers load them with the call. */
function toKept(event: EventTable[EventName]): EventTable[EventName] {
  if (!('call' in event) || typeof event.call !== 'object') return event
  const { arguments: _arguments, meta: _meta, ...call } = event.call
  return { ...event, call: { ...call, arguments: undefined } }
}

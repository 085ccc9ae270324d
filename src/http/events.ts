import type { IncomingMessage, ServerResponse } from 'node:http'
import { GatewayError } from '../contract/errors.ts'
import { type EventName, eventNames, isEventName } from '../contract/events.ts'
import { type Principal, toPrincipalKey } from '../contract/principal.ts'
import type { EventLog, LoggedEvent } from '../gateway/gateway.ts'
import type { Clock } from '../lib/clock.ts'
import type { ApiContext } from './routes/context.ts'

export type EventStreams = {
  /** Answers with events until the caller leaves; `Last-Event-ID` brings what was missed. */
  open(request: IncomingMessage, response: ServerResponse, who: Pick<ApiContext, 'principal' | 'delivery'>): void
  /** Ends what somebody has open whose token or sign-in no longer counts. */
  endOf(principal: Principal): void
  close(): void
}

type EventStreamsParts = {
  readonly log: EventLog
  readonly clock: Clock
  /** Whether an event is this caller's business; asked again for every one, because that may change. */
  maySee(principal: Principal, event: LoggedEvent): boolean
}

/** Often enough for whatever stands between to see that the line is in use. */
const beatMs = 15_000
/** Of what was missed; whoever missed more reads everything again. */
const mostMissed = 1024 * 1024
const mostStreams = 1000
/** One caller with many of them must not keep the others out. */
const mostOfOne = 50

export function createEventStreams({ log, clock, maySee }: EventStreamsParts): EventStreams {
  const open = new Map<ServerResponse, Principal>()

  return {
    open(request, response, { principal, delivery }) {
      const wanted = parseNames(request)
      const own = toPrincipalKey(principal)
      const ofOwn = [...open.values()].filter((other) => toPrincipalKey(other) === own).length
      if (open.size >= mostStreams || ofOwn >= mostOfOne)
        throw new GatewayError('limit-exceeded', 'Too many streams are open already', { retryAfter: 5 })
      const isWanted = (event: LoggedEvent) => wanted.has(event.name) && maySee(principal, event)
      response.writeHead(200, {
        'content-type': 'text/event-stream',
        'cache-control': 'no-store',
        'x-accel-buffering': 'no',
      })
      delivery.write(': sallyport\n\n')
      delivery.write(missedSince(lastIdOf(request), isWanted))
      const stop = log.listen((event) => {
        if (!isWanted(event)) return
        if (!response.writableEnded && !delivery.write(toText(event))) response.destroy()
      })
      let cancelBeat = clock.after(beatMs, beat)
      open.set(response, principal)
      response.on('close', () => {
        stop()
        cancelBeat()
        open.delete(response)
      })

      function beat(): void {
        delivery.write(': beat\n\n')
        cancelBeat = clock.after(beatMs, beat)
      }
    },
    endOf(principal) {
      for (const [response, of] of open) if (of === principal) response.end()
    },
    close() {
      for (const response of open.keys()) response.end()
    },
  }

  /** Too much was missed, or another gateway knew it: whoever listens reads everything again. */
  function missedSince(last: string | undefined, isWanted: (event: LoggedEvent) => boolean): string {
    if (last === undefined) return ''
    let text = ''
    for (const event of log.since(last)?.filter(isWanted) ?? [undefined]) {
      if (event === undefined || text.length > mostMissed) return 'event: reset\ndata: {}\n\n'
      text += toText(event)
    }
    return text
  }

  function toText(event: LoggedEvent): string {
    return `id: ${log.toId(event)}\nevent: ${event.name}\ndata: ${JSON.stringify(event.event)}\n\n`
  }
}

function parseNames(request: IncomingMessage): ReadonlySet<EventName> {
  const asked = new URL(request.url ?? '/', 'http://gateway').searchParams.get('names')
  if (asked === null || asked === '') return new Set(eventNames)
  const names = asked.split(',')
  const unknown = names.find((name) => !isEventName(name))
  if (unknown !== undefined) {
    throw new GatewayError('request-invalid', `No event is named ${JSON.stringify(unknown.slice(0, 64))}`, {
      known: eventNames,
    })
  }
  return new Set(names.filter(isEventName))
}

function lastIdOf(request: IncomingMessage): string | undefined {
  const id = request.headers['last-event-id']
  return typeof id === 'string' && id !== '' ? id.slice(0, 256) : undefined
}

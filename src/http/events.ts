import type { IncomingMessage, ServerResponse } from 'node:http'
import { GatewayError } from '../contract/errors.ts'
import { type EventName, eventNames, isEventName } from '../contract/events.ts'
import { type Principal, toPrincipalKey } from '../contract/principal.ts'
import type { EventLog, LoggedEvent } from '../gateway/gateway.ts'
import type { Clock } from '../lib/clock.ts'
import type { ApiContext } from './routes/context.ts'

export type EventStreams = {
  /** Streams events until the client disconnects; `Last-Event-ID` requests missed events. */
  open(request: IncomingMessage, response: ServerResponse, who: Pick<ApiContext, 'principal' | 'delivery'>): void
  /** Ends the streams of a principal whose token or sign-in is no longer valid. */
  endOf(principal: Principal): void
  close(): void
}

type EventStreamsParts = {
  readonly log: EventLog
  readonly clock: Clock
  /** Whether the principal may see this event; checked for every event, because access may change. */
  maySee(principal: Principal, event: LoggedEvent): boolean
}

/** Interval of keep-alive comments, so that proxies do not close the socket. */
const beatMs = 15_000
/** Maximum bytes of missed events; a client that missed more gets `reset` and reads everything again. */
const mostMissed = 1024 * 1024
const mostStreams = 1000
/** Maximum streams of one principal, so that one principal cannot use all of them. */
const mostOfOne = 50

export function createEventStreams({ log, clock, maySee }: EventStreamsParts): EventStreams {
  const open = new Map<ServerResponse, Principal>()

  return {
    open(request, response, { principal, delivery }) {
      const wanted = parseNames(request)
      const own = toPrincipalKey(principal)
      const ofOwn = [...open.values()].filter((other) => toPrincipalKey(other) === own).length
      if (open.size >= mostStreams || ofOwn >= mostOfOne)
        throw new GatewayError('limit-exceeded', 'Too many event streams are open', { retryAfter: 5 })
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

  /** The missed events, or `reset` if there are too many or if the id is from another gateway process. */
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

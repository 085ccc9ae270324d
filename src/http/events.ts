import type { IncomingMessage, ServerResponse } from 'node:http'
import { GatewayError } from '../contract/errors.ts'
import { type EventName, eventNames, isEventName } from '../contract/events.ts'
import type { Principal } from '../contract/principal.ts'
import type { EventLog, LoggedEvent } from '../gateway/gateway.ts'
import type { Clock } from '../lib/clock.ts'

export type EventStreams = {
  /** Answers with events until the caller leaves; `Last-Event-ID` brings what was missed. */
  open(request: IncomingMessage, response: ServerResponse, principal: Principal): void
  close(): void
}

type EventStreamsParts = {
  readonly log: EventLog
  readonly clock: Clock
  /** Whether an event is this caller's business; asked again for every one, because that may change. */
  maySee(principal: Principal, event: LoggedEvent): boolean
  /** Whether the caller is still who it was. */
  stillValid(request: IncomingMessage): boolean
}

const beatMs = 15_000
/** A reader that does not keep up loses the line instead of filling the memory; it comes back with its last id. */
const mostBuffered = 1024 * 1024
const mostStreams = 1000

export function createEventStreams({ log, clock, maySee, stillValid }: EventStreamsParts): EventStreams {
  const open = new Set<ServerResponse>()

  return {
    open(request, response, principal) {
      if (open.size >= mostStreams)
        throw new GatewayError('limit-exceeded', 'Too many listen already', { retryAfterMs: 5000 })
      const wanted = parseNames(request)
      const last = lastIdOf(request)
      const missed = last === undefined ? [] : log.since(last)
      response.writeHead(200, {
        'content-type': 'text/event-stream',
        'cache-control': 'no-store',
        'x-accel-buffering': 'no',
      })
      response.write(': sallyport\n\n')
      // Too much was missed, or another gateway knew it: whoever listens reads everything again.
      if (missed === undefined) response.write('event: reset\ndata: {}\n\n')
      for (const event of missed ?? []) write(event)
      const stop = log.listen(write)
      let cancelBeat = clock.after(beatMs, beat)
      open.add(response)
      response.on('close', () => {
        stop()
        cancelBeat()
        open.delete(response)
      })

      function write(event: LoggedEvent): void {
        if (!wanted.has(event.name) || !maySee(principal, event)) return
        response.write(`id: ${log.toId(event)}\nevent: ${event.name}\ndata: ${JSON.stringify(event.event)}\n\n`)
        if (response.writableLength > mostBuffered) response.destroy()
      }

      function beat(): void {
        if (!stillValid(request)) return void response.end()
        response.write(': beat\n\n')
        cancelBeat = clock.after(beatMs, beat)
      }
    },
    close() {
      for (const response of open) response.end()
    },
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

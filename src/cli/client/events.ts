import type { IncomingMessage } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { GatewayError, toGatewayError } from '../../contract/errors.ts'
import type { EventName } from '../../contract/events.ts'
import { createSseReader } from '../../wire/sse.ts'
import { type Address, toCredentials } from './address.ts'
import { readRefusal, send, toJson } from './http.ts'

export type Heard = { readonly name: string; readonly data: unknown }

export type ListenParts = {
  readonly address: Address
  readonly names: readonly EventName[]
  /** Milliseconds to retry after the connection is lost. */
  readonly patience: number
  readonly signal: AbortSignal
  /** Called before each connection. Throws if the program at the address is not the gateway. */
  recheck?(): Promise<void>
  /** Connected. `afresh`: earlier events may be lost, so the state must be read again. */
  onLinked(afresh: boolean): void
  onLost(): void
  onEvent(heard: Heard): void
}

/** The gateway sends keep-alive lines more often than this. */
const silenceMs = 45_000
const mostBytes = 16 * 1024 * 1024
const pauses = { first: 200, longest: 5000 }

/** Receives events until `signal` aborts. After a lost connection it reconnects and continues at the last event. */
export async function listen(parts: ListenParts): Promise<void> {
  const { signal } = parts
  let last: string | undefined
  let lostAt = performance.now()
  let wait = pauses.first
  while (!signal.aborted) {
    const failure = await openProven(parts, last, {
      onLinked() {
        wait = pauses.first
        parts.onLinked(last === undefined)
      },
      onPlace: (id) => {
        last = id
      },
      onEnd() {
        lostAt = performance.now()
        if (!signal.aborted) parts.onLost()
      },
    })
    if (signal.aborted) return
    if (failure && !isPassing(failure)) throw failure
    if (performance.now() - lostAt > parts.patience)
      throw failure ?? new GatewayError('unreachable', `The connection to ${parts.address.url} was lost`)
    await pause(wait, undefined, { signal }).catch(() => {})
    wait = Math.min(pauses.longest, wait * 2)
  }
}

/** Whether a retry may succeed. */
export function isPassing({ code, entry }: GatewayError): boolean {
  return code === 'limit-exceeded' || entry.http >= 500
}

type Line = { onLinked(): void; onPlace(id: string): void; onEnd(): void }

async function openProven(parts: ListenParts, last: string | undefined, line: Line): Promise<GatewayError | undefined> {
  try {
    await parts.recheck?.()
  } catch (error) {
    return toGatewayError(error)
  }
  return openStream(parts, last, line)
}

/** Reads one stream to its end; returns an error if the stream could not be opened. */
async function openStream(parts: ListenParts, last: string | undefined, line: Line): Promise<GatewayError | undefined> {
  const { address, names, signal } = parts
  const url = new URL(`/api/events?names=${names.join(',')}`, address.url)
  const headers = {
    accept: 'text/event-stream',
    ...toCredentials(address),
    ...(last !== undefined && { 'last-event-id': last }),
  }
  const answer = await send({ url, headers, silence: silenceMs, signal }).catch(toGatewayError)
  if (answer instanceof GatewayError) return answer
  if (answer.status !== 200) return readRefusal(answer, url.origin).catch(toGatewayError)
  line.onLinked()
  await readEvents(answer.incoming, parts, line)
  line.onEnd()
  return undefined
}

/** Resolves when the stream ends or fails. */
function readEvents(incoming: IncomingMessage, { onEvent }: ListenParts, { onPlace }: Line): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const reader = createSseReader({
    maxBytes: mostBytes,
    onEvent: ({ event, data }) => onEvent({ name: event, data: toJson(data) }),
    onPlace: ({ id }) => id !== undefined && onPlace(id),
    onTooLong: () => void incoming.destroy(),
  })
  incoming.on('data', (chunk: Buffer) => reader.push(chunk))
  incoming.on('error', () => resolve())
  incoming.on('close', () => resolve())
  return promise
}

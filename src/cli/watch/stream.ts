import { type IncomingMessage, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { setTimeout as pause } from 'node:timers/promises'
import { ErrorBody } from '../../contract/api/base.ts'
import { GatewayError, isErrorCode, toGatewayError } from '../../contract/errors.ts'
import type { EventName } from '../../contract/events.ts'
import { createSseReader } from '../../wire/sse.ts'
import { type Address, toCredentials } from '../address.ts'

export type Heard = { readonly name: string; readonly data: unknown }

export type ListenParts = {
  readonly address: Address
  readonly names: readonly EventName[]
  /** Milliseconds to look for a gateway that went away. */
  readonly patience: number
  readonly signal: AbortSignal
  /** Throws when the program at the address is not, or is no longer, the gateway. Asked before each connection. */
  recheck?(): Promise<void>
  /** Events come from now on; with `afresh` what came before is not known and has to be read. */
  onLinked(afresh: boolean): void
  onLost(): void
  onEvent(heard: Heard): void
}

/** A gateway says that it is there more often than this. */
const silenceMs = 45_000
const mostBytes = 16 * 1024 * 1024
const pauses = { first: 200, longest: 5000 }

/** Listens until `signal` says otherwise; comes back by itself where the line broke, to where it was. */
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
        parts.onLost()
      },
    })
    if (signal.aborted) return
    if (failure && !isPassing(failure)) throw failure
    if (performance.now() - lostAt > parts.patience)
      throw failure ?? new GatewayError('unreachable', `${parts.address.url} went away`)
    await pause(wait, undefined, { signal }).catch(() => {})
    wait = Math.min(pauses.longest, wait * 2)
  }
}

/** It may be otherwise in a moment. */
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

/** One stream, to its end; tells why where it did not come about. */
async function openStream(parts: ListenParts, last: string | undefined, line: Line): Promise<GatewayError | undefined> {
  const { address, names, signal } = parts
  const url = new URL(`/api/events?names=${names.join(',')}`, address.url)
  const { promise, resolve } = Promise.withResolvers<GatewayError | undefined>()
  const outgoing = (url.protocol === 'https:' ? requestHttps : requestHttp)(url, {
    headers: {
      accept: 'text/event-stream',
      ...toCredentials(address),
      ...(last !== undefined && { 'last-event-id': last }),
    },
    agent: false,
    signal,
  })
  let linked = false
  outgoing.setTimeout(silenceMs, () => outgoing.destroy(new Error('silence')))
  outgoing.on('error', (error) => end(unreachable(url, error)))
  outgoing.on('response', (incoming) => {
    if (incoming.statusCode !== 200) {
      readRefusal(incoming).then(end, (error: unknown) => end(unreachable(url, error)))
      return
    }
    linked = true
    line.onLinked()
    const reader = createSseReader({
      maxBytes: mostBytes,
      onEvent: ({ event, data }) => parts.onEvent({ name: event, data: toData(data) }),
      onPlace: ({ id }) => id !== undefined && line.onPlace(id),
      onTooLong: () => outgoing.destroy(new Error('an event without an end')),
    })
    incoming.on('data', (chunk: Buffer) => reader.push(chunk))
    incoming.on('error', () => end())
    incoming.on('close', () => end())
  })
  outgoing.end()
  return promise

  function end(failure?: GatewayError): void {
    if (linked) line.onEnd()
    resolve(linked ? undefined : failure)
    linked = false
  }
}

function toData(data: Buffer): unknown {
  try {
    return JSON.parse(data.toString('utf8'))
  } catch {
    return undefined
  }
}

async function readRefusal(incoming: IncomingMessage): Promise<GatewayError> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of incoming) {
    chunks.push(chunk)
    bytes += chunk.length
    if (bytes > 65_536) break
  }
  const body = ErrorBody.safeParse(toData(Buffer.concat(chunks))).data?.error
  if (body && isErrorCode(body.code)) return new GatewayError(body.code, body.message, body.details)
  return new GatewayError('unreachable', `The gateway answered ${incoming.statusCode}`)
}

function unreachable(url: URL, error: unknown): GatewayError {
  const reason = error instanceof Error && 'code' in error ? String(error.code) : 'no answer'
  return new GatewayError('unreachable', `No gateway answers at ${url.origin} (${reason})`, {}, { cause: error })
}

import { GatewayError, toGatewayError } from '../contract/errors.ts'
import type { JsonObject } from '../contract/json.ts'
import type { ServerDefinition } from '../contract/server.ts'
import { backoffDelay } from '../lib/backoff.ts'
import type { Clock } from '../lib/clock.ts'
import type { RingBuffer } from '../lib/ring-buffer.ts'
import type { Answer } from '../wire/answer.ts'
import type { Implementation, ServerCodec, ServerFacts } from '../wire/codec.ts'
import { createLegacyCodec } from '../wire/legacy.ts'
import { createModernCodec } from '../wire/modern.ts'
import { createPeer, type Peer, type PeerCounters, type RequestOptions } from '../wire/peer.ts'
import { createProbingCodec } from '../wire/probe.ts'
import type { CarrierParts, ServerCarrier } from './carrier.ts'
import type { EgressRules } from './egress.ts'
import { openHttp } from './http.ts'
import { type ListKind, listKinds, listTable } from './listing.ts'
import { openSse } from './sse.ts'
import { type ChildRecords, openStdio } from './stdio.ts'

/** How a server was reached: tried first the next time. */
export type Way = 'modern' | 'legacy' | 'sse'

/** `probe` asks a program in both eras on one pipe. */
export type WayToTry = Way | 'probe'

/** A server that answers. */
export type Link = {
  readonly way: Way
  readonly facts: ServerFacts
  request(method: string, params: JsonObject, options: LinkRequestOptions): Promise<Answer>
  /** Proves that the server is there. */
  prove(signal: AbortSignal): Promise<void>
  lastHeardAt(): number
  inFlight(): number
  readonly counters: PeerCounters
  close(): Promise<void>
}

export type LinkRequestOptions = RequestOptions & {
  /** The request is sent once more: its session was lost. */
  readonly onResent?: (() => void) | undefined
}

export type LinkParts = {
  readonly connection: string
  readonly definition: ServerDefinition
  readonly client: Implementation
  readonly instance: string
  readonly clock: Clock
  readonly egress: EgressRules
  readonly logs: RingBuffer
  readonly children: ChildRecords
  readonly maxMessageBytes: number
  readonly proofTimeoutMs: number
  /** These lists are no longer what they were. */
  onListChanged(kinds: readonly ListKind[]): void
  onClose(error: GatewayError): void
}

const listenForeverMs = 2 ** 31 - 1
const listenRetry = { first: 1000, most: 60_000, factor: 2 }

/** Opens one way and says hello. What was opened is closed again when the hello fails. */
export async function openLink(
  way: WayToTry,
  parts: LinkParts,
  options: { signal: AbortSignal; timeoutMs: number },
): Promise<Link> {
  const codec = createCodec(way, parts)
  const overHttp = parts.definition.transport !== 'stdio'
  const closing = new AbortController()
  let peer: Peer | undefined
  let heardAt = parts.clock.monotonic()
  let established = false
  let sessions = 0
  let renewing: Promise<void> | undefined
  let missed = false

  const carrierParts: CarrierParts = {
    maxMessageBytes: parts.maxMessageBytes,
    onMessage(message, origin) {
      heardAt = parts.clock.monotonic()
      peer?.receive(message, origin)
    },
    onTooLong: (id, error) => peer?.failRaw(id, error),
    onGap: () => parts.onListChanged(listKinds),
    onClose(error) {
      peer?.close(error)
      // Before that it is this attempt's failure: another way may still be tried.
      if (established && !closing.signal.aborted) parts.onClose(error)
    },
  }
  const carrier = await openCarrier(way, parts, carrierParts, options)
  peer = createPeer({
    carrier,
    codec,
    clock: parts.clock,
    cancelsByClosing: overHttp && codec.cancelsByClosing,
    onNotification(method) {
      const changed = listKinds.filter((kind) => listTable[kind].changed === method)
      if (changed.length > 0) parts.onListChanged(changed)
      if (method === 'notifications/subscriptions/acknowledged') onListening()
    },
    onRequest: (method) => (method === 'ping' ? {} : undefined),
  })
  const open = peer
  let facts: ServerFacts
  try {
    facts = await codec.open(open, options)
  } catch (error) {
    open.close(toGatewayError(error))
    closing.abort()
    await carrier.close()
    throw error
  }
  established = true
  if (codec.era === 'legacy') carrier.listen?.(codec.headers(undefined, {}))
  if (codec.era === 'modern') subscribe(1)

  return {
    way: way === 'probe' ? facts.era : way,
    facts,
    request,
    async prove(signal) {
      const proof = { signal, timeoutMs: parts.proofTimeoutMs }
      const answer = await request(codec.liveness, {}, proof)
      const unknownPing = answer.kind === 'error' && codec.liveness === 'ping'
      if (unknownPing) await request('tools/list', {}, proof)
    },
    lastHeardAt: () => heardAt,
    inFlight: () => open.inFlight(),
    counters: open.counters,
    async close() {
      closing.abort()
      await carrier.endSession(codec.headers(undefined, {}))
      open.close(new GatewayError('server-unavailable', 'The connection was closed'))
      await carrier.close()
    },
  }

  async function request(method: string, params: JsonObject, requestOptions: LinkRequestOptions): Promise<Answer> {
    if (renewing) await renewing
    const session = sessions
    try {
      return await open.request(method, params, requestOptions)
    } catch (error) {
      if (!(error instanceof GatewayError) || error.code !== 'session-lost') throw error
    }
    // The refusal proves that nothing was done: it may be sent once more, writing calls too.
    if (session === sessions) await renew(requestOptions)
    requestOptions.onResent?.()
    return open.request(method, params, requestOptions)
  }

  /** Many calls may find out at the same time: one renews, the others wait for it. */
  function renew(requestOptions: RequestOptions): Promise<void> {
    renewing ??= codec
      .open(open, { signal: closing.signal, timeoutMs: requestOptions.timeoutMs })
      .then(
        () => {
          sessions++
          carrier.listen?.(codec.headers(undefined, {}))
        },
        (error: unknown) => {
          const failure = toRenewError(error, closing.signal.aborted)
          if (!closing.signal.aborted) parts.onClose(failure)
          throw failure
        },
      )
      .finally(() => {
        renewing = undefined
      })
    return renewing
  }

  /** What changed while nobody listened was told to nobody. */
  function onListening(): void {
    if (missed) parts.onListChanged(listKinds)
    missed = false
  }

  /** The newer era tells changes only to those who listen. A server without subscriptions refuses, and is left alone. */
  function subscribe(attempt: number): void {
    if (closing.signal.aborted) return
    const params = {
      notifications: { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true },
    }
    open.request('subscriptions/listen', params, { signal: closing.signal, timeoutMs: listenForeverMs }).then(
      (answer) => {
        missed = true
        if (answer.kind === 'result') parts.clock.after(backoffDelay(1, listenRetry), () => subscribe(1))
      },
      () => {
        missed = true
        parts.clock.after(backoffDelay(attempt, listenRetry), () => subscribe(attempt + 1))
      },
    )
  }
}

/** Whoever waited for the new session has not been sent. */
function toRenewError(error: unknown, closing: boolean): GatewayError {
  if (closing) return new GatewayError('server-unavailable', 'The connection was closed', { sent: false })
  const { code, message, details } = toGatewayError(error)
  return new GatewayError(code, message, { ...details, sent: false }, { cause: error })
}

function createCodec(way: WayToTry, parts: LinkParts): ServerCodec {
  const modern = createModernCodec(parts.client, {})
  const legacy = createLegacyCodec(parts.client, {})
  if (way === 'probe') return createProbingCodec(modern, legacy, parts.clock)
  return way === 'modern' ? modern : legacy
}

async function openCarrier(
  way: WayToTry,
  parts: LinkParts,
  carrierParts: CarrierParts,
  options: { signal: AbortSignal; timeoutMs: number },
): Promise<ServerCarrier> {
  const { definition } = parts
  if (definition.transport === 'stdio') {
    const { instance, clock, logs, children } = parts
    return openStdio({ ...carrierParts, definition, instance, clock, logs, children }, parts.connection)
  }
  const httpParts = { ...carrierParts, definition, egress: parts.egress, clock: parts.clock }
  return way === 'sse' ? openSse(httpParts, options) : openHttp(httpParts)
}

import { GatewayError, toGatewayError } from '../contract/errors.ts'
import type { JsonObject } from '../contract/json.ts'
import type { ServerDefinition } from '../contract/server.ts'
import type { Clock } from '../lib/clock.ts'
import type { Masking } from '../masking/masking.ts'
import type { Answer } from '../wire/answer.ts'
import { isAtLeast, type LogLevel, usualLevel } from '../wire/caller.ts'
import type { Implementation, ServerCodec, ServerFacts } from '../wire/codec.ts'
import { createLegacyCodec, errorFacts } from '../wire/legacy.ts'
import { createModernCodec } from '../wire/modern.ts'
import { createPeer, type Peer, type PeerCounters, type RequestOptions } from '../wire/peer.ts'
import { createProbingCodec } from '../wire/probe.ts'
import type { EgressRules } from './http/egress.ts'
import { createListening, type Listening } from './listening.ts'
import { type ListKind, listKinds, listTable } from './listing.ts'
import type { ServerLogs } from './logs.ts'
import { maskAnswers } from './masked-peer.ts'
import { completeRounds, isIncomplete } from './rounds.ts'
import type { CarrierParts, ServerCarrier } from './transports/carrier.ts'
import { openHttp } from './transports/http.ts'
import { openSse } from './transports/sse.ts'
import { type ChildRecords, openStdio } from './transports/stdio.ts'

/** The protocol era or transport that worked; it is tried first the next time. */
export type Way = 'modern' | 'legacy' | 'sse'

/** `probe`: find out the era of a program on one pipe, with a request of each era. */
export type WayToTry = Way | 'probe'

/** One open MCP connection to a server. */
export type Link = {
  readonly way: Way
  readonly facts: ServerFacts
  request(method: string, params: JsonObject, options: LinkRequestOptions): Promise<Answer>
  /** Subscribes to changes of a resource. Rejects if the server does not support that. */
  follow(uri: string): Promise<void>
  unfollow(uri: string): Promise<void>
  /** Lowers the log level of the link to this level, for servers whose level applies to the whole link. */
  logFrom(level: LogLevel, options: RequestOptions): Promise<void>
  /** Sends a request to check that the server responds. */
  prove(signal: AbortSignal): Promise<void>
  lastHeardAt(): number
  inFlight(): number
  readonly counters: PeerCounters
  /** Calls that are still running fail with the reason. */
  close(reason?: GatewayError): Promise<void>
}

export type LinkRequestOptions = RequestOptions & {
  /** The request is sent again because its MCP session was lost. */
  readonly onResent?: (() => void) | undefined
}

export type LinkParts = {
  readonly connection: string
  readonly definition: ServerDefinition
  readonly client: Implementation
  readonly instance: string
  readonly clock: Clock
  readonly egress: EgressRules
  readonly logs: ServerLogs
  readonly workingFolder: string
  /** The address or command was configured in a scope of administrators. */
  readonly trusted: boolean
  readonly children: ChildRecords
  readonly maxMessageBytes: number
  readonly proofTimeoutMs: number
  readonly masking: Masking
  /** Secrets were masked in a message that belongs to no call. */
  onSecretFound(found: number): void
  /** The server's lists of these kinds may have changed. */
  onListChanged(kinds: readonly ListKind[]): void
  onResourceUpdated(uri: string): void
  /** A new MCP session replaced a lost one. The subscriptions of the lost session do not exist any more. */
  onRenewed(): void
  /** The server asked a question without naming its call while several calls shared the link. */
  onAmbiguous(): void
  onClose(error: GatewayError): void
}

const listenForeverMs = 2 ** 31 - 1
const maxLoggedBytes = 4096

/** Opens a transport and initializes the protocol. Closes the transport again if the initialization fails. */
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
  let listening: Listening | undefined
  let loggedFrom: LogLevel | undefined

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
      // An earlier close only fails this attempt: `negotiate` may try another way.
      if (established && !closing.signal.aborted) parts.onClose(error)
    },
  }
  const carrier = await openCarrier(way, parts, carrierParts, options)
  peer = createPeer({
    carrier,
    codec,
    clock: parts.clock,
    cancelsByClosing: overHttp && codec.cancelsByClosing,
    clean(params) {
      const cleaned = parts.masking.value(params)
      if (cleaned !== params) parts.onSecretFound(1)
      return cleaned
    },
    onNotification(method, params) {
      const changed = listKinds.filter((kind) => listTable[kind].changed === method)
      if (changed.length > 0) parts.onListChanged(changed)
      if (method === 'notifications/resources/updated' && typeof params.uri === 'string') {
        parts.onResourceUpdated(params.uri)
      }
      if (method === 'notifications/message') parts.logs.push(toLogLine(params))
    },
    onAmbiguous: () => parts.onAmbiguous(),
  })
  const open = maskAnswers(peer, parts.masking, (found) => parts.onSecretFound(found))
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
  if (codec.era === 'modern') {
    listening = createListening({
      clock: parts.clock,
      closing: closing.signal,
      acknowledgeTimeoutMs: parts.proofTimeoutMs,
      request: (params, how) => open.request('subscriptions/listen', params, { ...how, timeoutMs: listenForeverMs }),
      onGap: () => parts.onListChanged(listKinds),
    })
  }

  return {
    way: way === 'probe' ? facts.era : way,
    facts,
    request: requestInRounds,
    follow,
    unfollow,
    logFrom,
    async prove(signal) {
      const proof = { signal, timeoutMs: parts.proofTimeoutMs }
      const answer = await request(codec.liveness, {}, proof)
      const unknownPing = answer.kind === 'error' && codec.liveness === 'ping'
      if (unknownPing) await request('tools/list', {}, proof)
    },
    lastHeardAt: () => heardAt,
    inFlight: () => open.inFlight(),
    counters: open.counters,
    async close(reason = closedBecause('it is no longer needed')) {
      closing.abort()
      await carrier.endSession(codec.headers(undefined, {}))
      open.close(reason)
      await carrier.close()
    },
  }

  /** Sends a request. In the newer era, an answer may contain questions: sends the request again with the replies. */
  async function requestInRounds(
    method: string,
    params: JsonObject,
    requestOptions: LinkRequestOptions,
  ): Promise<Answer> {
    const { caller, signal, timeoutMs, maximumMs = timeoutMs } = requestOptions
    const since = parts.clock.monotonic()
    const first = await request(method, params, requestOptions)
    if (!caller || codec.era === 'legacy' || !isIncomplete(first)) return first
    const leftMs = maximumMs - (parts.clock.monotonic() - since)
    const send = (next: JsonObject, left: number) => request(method, next, { ...requestOptions, maximumMs: left })
    return completeRounds(first, params, { caller, clock: parts.clock, signal, leftMs, send })
  }

  async function request(method: string, params: JsonObject, requestOptions: LinkRequestOptions): Promise<Answer> {
    if (renewing) await renewing
    const session = sessions
    try {
      return await open.request(method, params, requestOptions)
    } catch (error) {
      if (!(error instanceof GatewayError) || error.code !== 'session-lost') throw error
    }
    // The server refused the request before running it, so even a writing call may be sent again.
    if (session === sessions) await renew(requestOptions)
    requestOptions.onResent?.()
    return open.request(method, params, requestOptions)
  }

  /** Opens a new MCP session. Calls that lose the session at the same time share one renewal. */
  function renew(requestOptions: RequestOptions): Promise<void> {
    renewing ??= codec
      .open(open, { signal: closing.signal, timeoutMs: requestOptions.timeoutMs })
      .then(
        () => {
          sessions++
          loggedFrom = undefined
          carrier.listen?.(codec.headers(undefined, {}))
          parts.onListChanged(listKinds) // changes between the two sessions were not reported
          parts.onRenewed()
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

  async function follow(uri: string): Promise<void> {
    if (listening) return listening.follow(uri)
    const answer = await request('resources/subscribe', { uri }, ownOptions())
    if (answer.kind === 'error') {
      throw new GatewayError('server-refused', 'The server refused the subscription', errorFacts(answer))
    }
  }

  async function unfollow(uri: string): Promise<void> {
    if (listening) return listening.unfollow(uri)
    await request('resources/unsubscribe', { uri }, ownOptions()).catch(() => {}) // later updates are ignored
  }

  /**
   * The level is only ever lowered, starting from the usual level: callers share the link, and the gateway filters for
   * each caller. The call continues if the server refuses.
   */
  async function logFrom(wanted: LogLevel, requestOptions: RequestOptions): Promise<void> {
    if (codec.era === 'modern' || facts.capabilities.logging === undefined) return
    const level = isAtLeast(wanted, usualLevel) ? usualLevel : wanted
    if (loggedFrom !== undefined && isAtLeast(level, loggedFrom)) return
    loggedFrom = level
    await request('logging/setLevel', { level }, requestOptions).catch((error: unknown) => {
      loggedFrom = undefined
      if (requestOptions.signal.aborted) throw error
    })
  }

  function ownOptions(): RequestOptions {
    return { signal: closing.signal, timeoutMs: parts.proofTimeoutMs }
  }
}

/** The error of calls that were running when the gateway closed the connection. */
export function closedBecause(why: string): GatewayError {
  return new GatewayError('server-unavailable', `The gateway closed the connection to the server: ${why}`)
}

/** Log messages of the protocol are kept together with the standard error of the program. */
function toLogLine({ level, logger, data }: JsonObject): Buffer {
  const from = typeof logger === 'string' ? ` ${logger}:` : ''
  const text = typeof data === 'string' ? data : JSON.stringify(data ?? null)
  const line = `[${typeof level === 'string' ? level : 'log'}]${from} ${text}`.replaceAll('\n', ' ')
  return Buffer.from(`${line.slice(0, maxLoggedBytes)}\n`)
}

/** Requests that waited for the new session were not sent. */
function toRenewError(error: unknown, closing: boolean): GatewayError {
  if (closing) {
    const { code, message } = closedBecause('it was closed while its MCP session was renewed')
    return new GatewayError(code, message, {}, { reach: 'unsent' })
  }
  return toGatewayError(error).withReach('unsent')
}

function createCodec(way: WayToTry, parts: LinkParts): ServerCodec {
  const modern = createModernCodec(parts.client)
  const legacy = createLegacyCodec(parts.client)
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
    const { instance, clock, logs, children, workingFolder, trusted } = parts
    const stdioParts = { ...carrierParts, definition, instance, clock, logs, children, workingFolder, trusted }
    return openStdio(stdioParts, parts.connection)
  }
  const httpParts = { ...carrierParts, definition, egress: parts.egress, clock: parts.clock }
  return way === 'sse' ? openSse(httpParts, options) : openHttp(httpParts)
}

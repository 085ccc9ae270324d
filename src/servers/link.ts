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

/** How a server was reached: tried first the next time. */
export type Way = 'modern' | 'legacy' | 'sse'

/** `probe` asks a program in both eras on one pipe. */
export type WayToTry = Way | 'probe'

/** A server that answers. */
export type Link = {
  readonly way: Way
  readonly facts: ServerFacts
  request(method: string, params: JsonObject, options: LinkRequestOptions): Promise<Answer>
  /** From now on the server tells when this resource changes; or rejects, if it cannot. */
  follow(uri: string): Promise<void>
  unfollow(uri: string): Promise<void>
  /** Makes the server log at least so much, where it does so for the whole link. */
  logFrom(level: LogLevel, options: RequestOptions): Promise<void>
  /** Proves that the server is there. */
  prove(signal: AbortSignal): Promise<void>
  lastHeardAt(): number
  inFlight(): number
  readonly counters: PeerCounters
  /** Calls that are still running fail with the reason. */
  close(reason?: GatewayError): Promise<void>
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
  readonly logs: ServerLogs
  readonly workingFolder: string
  /** An administrators' scope wrote the address or the command. */
  readonly trusted: boolean
  readonly children: ChildRecords
  readonly maxMessageBytes: number
  readonly proofTimeoutMs: number
  readonly masking: Masking
  /** Something was hidden that belongs to no call. */
  onSecretFound(found: number): void
  /** These lists are no longer what they were. */
  onListChanged(kinds: readonly ListKind[]): void
  onResourceUpdated(uri: string): void
  /** The server has forgotten the session, with everything it had been asked to tell, and has a new one. */
  onRenewed(): void
  /** The server asks questions that cannot be told apart while calls share the link. */
  onAmbiguous(): void
  onClose(error: GatewayError): void
}

const listenForeverMs = 2 ** 31 - 1
const maxLoggedBytes = 4096

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
      patienceMs: parts.proofTimeoutMs,
      request: (params, how) => open.request('subscriptions/listen', params, { ...how, timeoutMs: listenForeverMs }),
      onGap: () => parts.onListChanged(listKinds),
    })
  }

  return {
    way: way === 'probe' ? facts.era : way,
    facts,
    request: converse,
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
    async close(reason = closedBecause('it is not needed any more')) {
      closing.abort()
      await carrier.endSession(codec.headers(undefined, {}))
      open.close(reason)
      await carrier.close()
    },
  }

  /** A request, and the rounds of questions that it takes where the era asks by answers. */
  async function converse(method: string, params: JsonObject, requestOptions: LinkRequestOptions): Promise<Answer> {
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
          loggedFrom = undefined
          carrier.listen?.(codec.headers(undefined, {}))
          parts.onListChanged(listKinds) // what changed between the two was told to nobody
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
    await request('resources/unsubscribe', { uri }, ownOptions()).catch(() => {}) // what it tells now reaches nobody
  }

  /**
   * Only ever more, and never less than usual: the link is everybody's, and each caller hears from its own level on.
   * A refusal costs nobody the call.
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

/** What a server logs by message stands beside what it prints. */
function toLogLine({ level, logger, data }: JsonObject): Buffer {
  const from = typeof logger === 'string' ? ` ${logger}:` : ''
  const text = typeof data === 'string' ? data : JSON.stringify(data ?? null)
  const line = `[${typeof level === 'string' ? level : 'log'}]${from} ${text}`.replaceAll('\n', ' ')
  return Buffer.from(`${line.slice(0, maxLoggedBytes)}\n`)
}

/** Whoever waited for the new session has not been sent. */
function toRenewError(error: unknown, closing: boolean): GatewayError {
  if (closing) {
    const { code, message } = closedBecause('it was ended while its session was renewed')
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

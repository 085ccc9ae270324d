import { GatewayError } from '../../contract/errors.ts'
import type { JsonObject } from '../../contract/json.ts'
import { backoffDelay } from '../../lib/backoff.ts'
import { type Clock, sleep } from '../../lib/clock.ts'
import { isObject, parseJson } from '../../lib/json.ts'
import { sessionHeader, versionHeader } from '../../wire/legacy.ts'
import type { Http, Reply } from './http.ts'
import { credentials, type Joined, type Joining } from './joining.ts'
import { findEnvelope, listKinds, type Message, toListChanged, toRefusal, toUpdated } from './message.ts'

/** The MCP session of older protocol revisions. It is renewed when the gateway restarts, unnoticed by the client. */
export type Session = {
  /** Headers of the MCP session; renews a lost session. Empty before `initialize`. */
  headers(gateway: Joined): Promise<Readonly<Record<string, string>>>
  /** The gateway answered the client's `initialize`. */
  opened(initialize: Buffer, reply: Reply, answer: Buffer): void
  /** The gateway answered a request. Log levels and subscriptions are remembered for a renewed session. */
  answered(message: Message): void
  /** The client sent `notifications/initialized`. */
  initialized(line: Buffer): void
  /** The gateway does not know the session in these headers. */
  lost(headers: Readonly<Record<string, string>>): void
  /** Stops the event stream. */
  quiet(): void
  end(): Promise<void>
}

type SessionParts = {
  readonly joining: Joining
  readonly http: Http
  readonly path: string
  readonly clock: Clock
  write(message: Buffer): void
}

type Opened = { headers: Record<string, string>; capabilities: JsonObject }

const streamRetry = { first: 200, most: 5000, factor: 2 }
const goodbyeMs = 1000
const renewMs = 15_000
const mostWishes = 1000
/** Retries, because a gateway that has just started may not have connected its servers yet. */
const wishRetry = { first: 500, most: 10_000, factor: 2 }
const wishAttempts = 8

export function createSession(parts: SessionParts): Session {
  const { joining, http, clock } = parts
  const closing = new AbortController()
  let initialize: Buffer | undefined
  let initialized: Buffer | undefined
  let opened: Opened | undefined
  let renewing: Promise<Opened> | undefined
  let listening: AbortController | undefined
  /** Requests to repeat in a renewed session: the log level and resource subscriptions, by subject. */
  const wishes = new Map<string, Buffer>()

  const to = (gateway: Joined, headers: Record<string, string>) => ({
    url: new URL(parts.path, gateway.url),
    headers: { ...credentials(gateway.token), ...headers },
  })

  /** Opens a new session with the client's first `initialize`. The client does not notice. */
  async function renew(gateway: Joined, first: Buffer): Promise<Opened> {
    const signal = AbortSignal.any([closing.signal, AbortSignal.timeout(renewMs)])
    let answer: Buffer | undefined
    const onEvent = (message: Buffer) => {
      answer = message
    }
    const reply = await http.send({ method: 'POST', ...to(gateway, {}), body: first, signal, onEvent })
    const renewed = toOpened(reply, answer ?? reply.body)
    if (renewed === undefined) throw toRefusal(reply)
    opened = renewed
    if (initialized) {
      await http.send({ method: 'POST', ...to(gateway, renewed.headers), body: initialized, signal })
      listen()
      tellChanges(renewed.capabilities)
    }
    const standing = AbortSignal.any([closing.signal, ...(listening ? [listening.signal] : [])])
    for (const [about, line] of wishes) wishAgain(gateway, renewed, { about, line }, standing).catch(() => {})
    return renewed
  }

  async function wishAgain(
    gateway: Joined,
    { headers }: Opened,
    { about, line }: { about: string; line: Buffer },
    signal: AbortSignal,
  ): Promise<void> {
    for (let attempt = 1; attempt <= wishAttempts && wishes.get(about) === line; attempt++) {
      let answer: Buffer | undefined
      const onEvent = (message: Buffer) => {
        answer = message
      }
      const reply = await http.send({ method: 'POST', ...to(gateway, headers), body: line, signal, onEvent })
      if (findEnvelope(answer ?? reply.body)?.kind === 'result') {
        if (about !== levelMethod) parts.write(toUpdated(about))
        return
      }
      await sleep(clock, backoffDelay(attempt, wishRetry), signal)
    }
  }

  /** Changes during the gap are unknown, so report that all lists may have changed. */
  function tellChanges(capabilities: JsonObject): void {
    for (const kind of listKinds) {
      const capability = capabilities[kind]
      if (isObject(capability) && capability.listChanged === true) parts.write(toListChanged(kind))
    }
  }

  function listen(): void {
    listening?.abort()
    listening = new AbortController()
    const signal = AbortSignal.any([closing.signal, listening.signal])
    keepListening(signal).catch(() => {})
  }

  /** Keeps the GET event stream open: reopens it when it ends, with a new session if the old one is unknown. */
  async function keepListening(signal: AbortSignal): Promise<void> {
    for (let attempt = 1; !signal.aborted; attempt++) {
      const gateway = await joining.find().catch(() => undefined)
      if (gateway) {
        const headers = await session.headers(gateway).catch(() => undefined)
        // A renewed session has already opened another stream.
        if (signal.aborted) return
        const reply = headers && (await stream(gateway, headers, signal))
        if (reply?.status === 404) session.lost(headers ?? {})
        if (reply?.status === 405) return
        if (reply?.status === 200) attempt = 0
      }
      await sleep(clock, backoffDelay(attempt, streamRetry), signal)
    }
  }

  function stream(gateway: Joined, headers: Readonly<Record<string, string>>, signal: AbortSignal) {
    const place = to(gateway, { ...headers, accept: 'text/event-stream' })
    return http.send({ method: 'GET', ...place, signal, onEvent: parts.write }).catch(() => undefined)
  }

  const session: Session = {
    async headers(gateway) {
      if (opened) return opened.headers
      if (initialize === undefined) return {}
      renewing ??= renew(gateway, initialize).finally(() => {
        renewing = undefined
      })
      return (await renewing).headers
    },
    opened(line, reply, answer) {
      const started = toOpened(reply, answer)
      if (started === undefined) return
      initialize = line
      opened = started
    },
    answered({ method, params, line }) {
      if (method === levelMethod) wishes.set(method, line)
      if (typeof params.uri !== 'string') return
      if (method === 'resources/subscribe' && wishes.size < mostWishes) wishes.set(params.uri, line)
      if (method === 'resources/unsubscribe') wishes.delete(params.uri)
    },
    initialized(line) {
      initialized = line
      listen()
    },
    lost(headers) {
      if (opened?.headers === headers) opened = undefined
    },
    quiet: () => listening?.abort(),
    async end() {
      closing.abort(new GatewayError('shutting-down', 'The program is ending'))
      const gateway = joining.current()
      if (opened === undefined || gateway === undefined) return
      const signal = AbortSignal.timeout(goodbyeMs)
      await http.send({ method: 'DELETE', ...to(gateway, opened.headers), signal }).catch(() => {})
    },
  }
  return session
}

const levelMethod = 'logging/setLevel'
const lasting: ReadonlySet<string> = new Set([levelMethod, 'resources/subscribe', 'resources/unsubscribe'])

export function isLasting({ era, method }: Message): boolean {
  return era === 'legacy' && lasting.has(method)
}

function toOpened(reply: Reply, answer: Buffer): Opened | undefined {
  const id = reply.headers[sessionHeader]
  const envelope = findEnvelope(answer)
  if (typeof id !== 'string' || envelope?.kind !== 'result') return undefined
  const result = parseJson(answer.subarray(envelope.span.start, envelope.span.end))
  if (!isObject(result)) return undefined
  const { protocolVersion, capabilities } = result
  const revision: Record<string, string> =
    typeof protocolVersion === 'string' ? { [versionHeader]: protocolVersion } : {}
  return { headers: { [sessionHeader]: id, ...revision }, capabilities: isObject(capabilities) ? capabilities : {} }
}

import type { ServerResponse } from 'node:http'
import type { ViewSelector } from '../catalog/catalog.ts'
import { GatewayError } from '../contract/errors.ts'
import type { JsonObject } from '../contract/json.ts'
import { type Principal, type PrincipalKey, toPrincipalKey } from '../contract/principal.ts'
import type { Clock } from '../lib/clock.ts'
import type { Delivery } from '../lib/delivery.ts'
import type { Ids } from '../lib/ids.ts'
import type { LogLevel } from '../wire/caller.ts'
import { sseKeepAlive, toSseEvent } from '../wire/sse.ts'
import { keepAliveMs, startStream } from './reply.ts'
import { createSessionQuestions, type SessionQuestions } from './session-questions.ts'

/** One MCP session of the older era, from `initialize` until its client ends it or is silent for too long. */
export type McpSession = {
  readonly id: string
  readonly principal: Principal
  readonly selector: ViewSelector
  readonly revision: string
  /** Running calls, by the client's id as JSON. */
  readonly inFlight: Map<string, AbortController>
  readonly capabilities: JsonObject
  readonly ask: SessionQuestions['ask']
  readonly answered: SessionQuestions['answered']
  /** The lowest level of server logs that the client gets. */
  logLevel(): LogLevel | 'any'
  logFrom(level: LogLevel): void
  /** Subscriptions by URI. Aborting one ends it. */
  readonly followed: Map<string, AbortController>
  /** Sends on the open stream, or keeps the message until a stream is opened. */
  notify(method: string, params?: JsonObject): void
  /** `by` is the principal of the request. Its token may be another one than that of the session. */
  openStream(response: ServerResponse, delivery: Delivery, by: Principal): void
  touch(): void
}

type Wanted = Pick<McpSession, 'principal' | 'selector' | 'revision' | 'capabilities'>

export type McpSessions = {
  create(wanted: Wanted, onEnd: () => void): McpSession
  /** Throws `session-not-found`, also for the MCP session of another principal. */
  get(id: string, principal: Principal, selector: ViewSelector): McpSession
  end(session: McpSession): void
  /** A token was revoked: ends the MCP sessions that were opened with it. Running calls finish. */
  endOf(principal: Principal): void
  count(): number
  close(): void
}

const maxSessions = 10_000
const maxPerPrincipal = 2000
const idleMs = 3_600_000
const maxUnsaid = 1000
const maxUnsaidBytes = 256 * 1024

type Held = McpSession & {
  readonly key: PrincipalKey
  lastSeen(): number
  /** Sends nothing more to the client; its calls continue. */
  hangUp(): void
  endStreamOf(principal: Principal): void
}

export function createMcpSessions(parts: { instance: string; clock: Clock; ids: Ids }): McpSessions {
  const { clock } = parts
  const sessions = new Map<string, Held>()
  let cancelSweep = clock.after(idleMs / 10, sweep)

  function sweep(): void {
    for (const session of sessions.values()) {
      if (clock.monotonic() - session.lastSeen() > idleMs) drop(session)
    }
    cancelSweep = clock.after(idleMs / 10, sweep)
  }

  function drop(session: Held): void {
    if (!sessions.delete(session.id)) return
    session.hangUp()
    for (const controller of session.inFlight.values()) controller.abort()
  }

  function makeRoom(key: PrincipalKey): void {
    const own = [...sessions.values()].filter((session) => session.key === key)
    const crowd = own.length >= maxPerPrincipal ? own : sessions.size >= maxSessions ? [...sessions.values()] : []
    // The session that was silent for longest is ended; its client can open a new one.
    const oldest = crowd.reduce<Held | undefined>((a, b) => (a && a.lastSeen() <= b.lastSeen() ? a : b), undefined)
    if (oldest) drop(oldest)
  }

  return {
    create(wanted, onEnd) {
      const key = toPrincipalKey(wanted.principal)
      if (sessions.size >= maxPerPrincipal) makeRoom(key)
      const session = createSession({ ...wanted, key, id: `${parts.instance}.${parts.ids.secret(24)}`, clock, onEnd })
      sessions.set(session.id, session)
      return session
    },
    get(id, principal, selector) {
      const session = sessions.get(id)
      const mine = session?.key === toPrincipalKey(principal) && isSameSelector(session.selector, selector)
      if (!session || !mine) throw new GatewayError('session-not-found', 'This MCP session does not exist or has ended')
      session.touch()
      return session
    },
    end(session) {
      const held = sessions.get(session.id)
      if (held) drop(held)
    },
    endOf(principal) {
      for (const session of [...sessions.values()]) {
        session.endStreamOf(principal)
        if (session.principal !== principal) continue
        sessions.delete(session.id)
        session.hangUp()
      }
    },
    count: () => sessions.size,
    close() {
      cancelSweep()
      // Running calls are not cancelled with their sessions: the stop of the gateway waits for them.
      for (const session of sessions.values()) session.hangUp()
      sessions.clear()
    },
  }
}

type SessionParts = Wanted & {
  readonly id: string
  readonly key: PrincipalKey
  readonly clock: Clock
  onEnd(): void
}

function createSession(parts: SessionParts): Held {
  const { clock } = parts
  const inFlight = new Map<string, AbortController>()
  const unsaid = new Set<string>()
  let unsaidBytes = 0
  const followed = new Map<string, AbortController>()
  const { ask, answered } = createSessionQuestions(clock)
  let level: LogLevel | 'any' = 'any'
  let stream: ServerResponse | undefined
  let delivery: Delivery | undefined
  let streamOf: Principal | undefined
  let seen = clock.monotonic()

  function keepAlive(on: ServerResponse): void {
    if (on !== stream || on.destroyed) return
    delivery?.write(sseKeepAlive)
    seen = clock.monotonic()
    clock.after(keepAliveMs, () => keepAlive(on))
  }

  function notify(method: string, params?: JsonObject): void {
    say(JSON.stringify({ jsonrpc: '2.0', method, ...(params && { params }) }))
  }

  /** Equal messages that wait for a stream are sent once. */
  function say(message: string): void {
    if (!stream || stream.destroyed) return keep(message)
    if (!delivery?.write(toSseEvent(message))) stream.destroy()
  }

  function endStream(): void {
    stream?.end()
    delivery?.settle()
  }

  function keep(message: string): void {
    if (unsaid.has(message) || unsaid.size >= maxUnsaid || unsaidBytes + message.length > maxUnsaidBytes) return
    unsaid.add(message)
    unsaidBytes += message.length
  }

  return {
    id: parts.id,
    key: parts.key,
    principal: parts.principal,
    selector: parts.selector,
    revision: parts.revision,
    capabilities: parts.capabilities,
    ask,
    answered,
    logLevel: () => level,
    logFrom(wanted) {
      level = wanted
    },
    followed,
    inFlight,
    notify,
    openStream(response, deliveredBy, by) {
      endStream()
      stream = response
      delivery = deliveredBy
      streamOf = by
      startStream(response)
      response.flushHeaders()
      response.on('close', () => {
        if (stream === response) stream = undefined
      })
      clock.after(keepAliveMs, () => keepAlive(response))
      for (const message of unsaid) say(message)
      unsaid.clear()
      unsaidBytes = 0
    },
    touch() {
      seen = clock.monotonic()
    },
    lastSeen: () => seen,
    endStreamOf(principal) {
      if (streamOf === principal) endStream()
    },
    hangUp() {
      parts.onEnd()
      for (const following of followed.values()) following.abort()
      endStream()
    },
  }
}

function isSameSelector(a: ViewSelector, b: ViewSelector): boolean {
  if (a.kind === 'all' || b.kind === 'all') return a.kind === b.kind
  return a.kind === b.kind && a.name === b.name
}

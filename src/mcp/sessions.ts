import type { ServerResponse } from 'node:http'
import type { ViewSelector } from '../catalog/catalog.ts'
import { GatewayError } from '../contract/errors.ts'
import { type Principal, type PrincipalKey, toPrincipalKey } from '../contract/principal.ts'
import type { Clock } from '../lib/clock.ts'
import type { Ids } from '../lib/ids.ts'
import { sseKeepAlive, toSseEvent } from '../wire/sse.ts'
import { keepAliveMs, startStream } from './reply.ts'

/** One client of the older era, from `initialize` until it says goodbye or is not heard of any more. */
export type McpSession = {
  readonly id: string
  readonly principal: Principal
  readonly selector: ViewSelector
  readonly revision: string
  /** Calls under way, by the id that the client gave them, as JSON. */
  readonly inFlight: Map<string, AbortController>
  /** Sends on the standing stream, or keeps it until there is one. */
  notify(method: string): void
  openStream(response: ServerResponse): void
  touch(): void
}

export type McpSessions = {
  create(wanted: { principal: Principal; selector: ViewSelector; revision: string }, onEnd: () => void): McpSession
  /** Throws `session-not-found`, also when it belongs to somebody else: nobody learns that it exists. */
  get(id: string, principal: Principal, selector: ViewSelector): McpSession
  end(session: McpSession): void
  count(): number
  close(): void
}

const maxSessions = 10_000
const maxPerPrincipal = 2000
const idleMs = 3_600_000
const maxUnread = 1024 * 1024

type Held = McpSession & {
  readonly key: PrincipalKey
  lastSeen(): number
  /** Tells its client nothing more; its calls go on. */
  hangUp(): void
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
    // The one that was silent for longest gives way; its client starts a new one when it comes back.
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
      if (!session || !mine) throw new GatewayError('session-not-found', 'There is no such session')
      session.touch()
      return session
    },
    end(session) {
      const held = sessions.get(session.id)
      if (held) drop(held)
    },
    count: () => sessions.size,
    close() {
      cancelSweep()
      // Calls under way are not taken back with their sessions: whoever stops the gateway lets them finish or ends them.
      for (const session of sessions.values()) session.hangUp()
      sessions.clear()
    },
  }
}

type SessionParts = {
  readonly id: string
  readonly key: PrincipalKey
  readonly principal: Principal
  readonly selector: ViewSelector
  readonly revision: string
  readonly clock: Clock
  onEnd(): void
}

function createSession(parts: SessionParts): Held {
  const { clock } = parts
  const inFlight = new Map<string, AbortController>()
  const unsaid = new Set<string>()
  let stream: ServerResponse | undefined
  let seen = clock.monotonic()

  function keepAlive(on: ServerResponse): void {
    if (on !== stream || on.destroyed) return
    on.write(sseKeepAlive)
    seen = clock.monotonic()
    clock.after(keepAliveMs, () => keepAlive(on))
  }

  function notify(method: string): void {
    if (!stream || stream.destroyed) return void unsaid.add(method)
    if (stream.writableLength > maxUnread) return void stream.destroy()
    stream.write(toSseEvent(JSON.stringify({ jsonrpc: '2.0', method })))
  }

  return {
    id: parts.id,
    key: parts.key,
    principal: parts.principal,
    selector: parts.selector,
    revision: parts.revision,
    inFlight,
    notify,
    openStream(response) {
      stream?.end()
      stream = response
      startStream(response)
      response.flushHeaders()
      response.on('close', () => {
        if (stream === response) stream = undefined
      })
      clock.after(keepAliveMs, () => keepAlive(response))
      for (const method of unsaid) notify(method)
      unsaid.clear()
    },
    touch() {
      seen = clock.monotonic()
    },
    lastSeen: () => seen,
    hangUp() {
      parts.onEnd()
      stream?.end()
    },
  }
}

function isSameSelector(a: ViewSelector, b: ViewSelector): boolean {
  if (a.kind === 'all' || b.kind === 'all') return a.kind === b.kind
  return a.kind === b.kind && a.name === b.name
}

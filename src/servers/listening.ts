import { GatewayError, toGatewayError } from '../contract/errors.ts'
import { backoffDelay } from '../lib/backoff.ts'
import type { Clock } from '../lib/clock.ts'
import { isObject } from '../lib/json.ts'
import { onAbort } from '../lib/signals.ts'
import type { Answer } from '../wire/answer.ts'

export type Listening = {
  /** Resolves when the server tells changes of this resource as well. */
  follow(uri: string): Promise<void>
  unfollow(uri: string): void
}

export type ListeningParts = {
  readonly clock: Clock
  readonly closing: AbortSignal
  /** Milliseconds for an acknowledgement. */
  readonly patienceMs: number
  /** Long to be answered. The server first takes note of it and says which part of it it honours. */
  request(params: ListenParams, how: ListenOptions): Promise<Answer>
  /** Something may have changed while nobody listened. */
  onGap(): void
}

export type ListenOptions = { readonly signal: AbortSignal; onAcknowledged(honoured: unknown): void }

type ListenParams = {
  readonly notifications: {
    toolsListChanged: true
    promptsListChanged: true
    resourcesListChanged: true
    resourceSubscriptions?: string[]
  }
}

/** One standing request. The next one takes over only when it has been acknowledged. */
type Standing = { readonly controller: AbortController; readonly waiters: Waiter[] }
type Waiter = { readonly uri: string; agree(): void; fail(error: GatewayError): void }

const retry = { first: 1000, most: 60_000, factor: 2 }

/** The newer era tells changes only to those who listen. A server without subscriptions refuses, and is left alone. */
export function createListening(parts: ListeningParts): Listening {
  const { clock, closing } = parts
  const wanted = new Set<string>()
  let standing: Standing | undefined
  let coming: Standing | undefined
  let gathering: Waiter[] | undefined
  let missed = false

  listen(1, [])
  return {
    follow(uri) {
      wanted.add(uri)
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      const fail = (error: GatewayError) => {
        wanted.delete(uri)
        reject(error)
      }
      const late = () => fail(new GatewayError('call-timeout', 'The server did not say whether it tells changes'))
      const cancel = clock.after(parts.patienceMs, late)
      listenSoon({ uri, agree: resolve, fail })
      return promise.finally(cancel)
    },
    unfollow(uri) {
      if (wanted.delete(uri)) listenSoon()
    },
  }

  /** Many changes at once are one request. */
  function listenSoon(waiter?: Waiter): void {
    if (!gathering) {
      queueMicrotask(() => {
        const waiters = gathering ?? []
        gathering = undefined
        listen(1, waiters)
      })
    }
    gathering ??= []
    if (waiter) gathering.push(waiter)
  }

  /** One that has not been acknowledged yet is given up for the one that wants what is wanted now. */
  function listen(attempt: number, waiters: Waiter[]): void {
    const before = coming
    const next: Standing = { controller: new AbortController(), waiters: [...(before?.waiters ?? []), ...waiters] }
    coming = next
    before?.controller.abort()
    const unlink = onAbort(closing, () => next.controller.abort())
    parts
      .request(toParams(wanted), {
        signal: next.controller.signal,
        onAcknowledged: (honoured) => acknowledged(next, honoured),
      })
      .then(
        (answer) => ended(next, answer, attempt),
        (error: unknown) => ended(next, toGatewayError(error), attempt),
      )
      .finally(unlink)
  }

  function acknowledged(next: Standing, honoured: unknown): void {
    if (next !== coming) return
    coming = undefined
    standing?.controller.abort()
    standing = next
    for (const waiter of next.waiters) {
      if (isHonoured(waiter.uri, honoured)) waiter.agree()
      else waiter.fail(untold())
    }
    if (missed) parts.onGap()
    missed = false
  }

  function ended(which: Standing, how: Answer | GatewayError, attempt: number): void {
    if (which !== coming && which !== standing) return // another one has taken over
    const wasStanding = which === standing
    if (which === coming) coming = undefined
    if (wasStanding) standing = undefined
    missed = true
    const refused = !(how instanceof GatewayError) && how.kind === 'error'
    for (const waiter of which.waiters) waiter.fail(how instanceof GatewayError ? how : untold())
    if (refused || closing.aborted) return
    const next = wasStanding ? 1 : attempt + 1
    clock.after(backoffDelay(next, retry), () => {
      if (!coming && !standing && !closing.aborted) listen(next, [])
    })
  }
}

function untold(): GatewayError {
  return new GatewayError('method-not-found', 'The server does not tell changes of this resource')
}

/** A server that does not say what it honours is taken at its word. */
function isHonoured(uri: string, honoured: unknown): boolean {
  if (!isObject(honoured)) return true
  const { resourceSubscriptions: uris } = honoured
  return Array.isArray(uris) && uris.includes(uri)
}

function toParams(wanted: ReadonlySet<string>): ListenParams {
  return {
    notifications: {
      toolsListChanged: true,
      promptsListChanged: true,
      resourcesListChanged: true,
      ...(wanted.size > 0 && { resourceSubscriptions: [...wanted] }),
    },
  }
}

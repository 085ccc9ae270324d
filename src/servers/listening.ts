import { GatewayError, toGatewayError } from '../contract/errors.ts'
import { backoffDelay } from '../lib/backoff.ts'
import type { Clock } from '../lib/clock.ts'
import type { Answer } from '../wire/answer.ts'

export type Listening = {
  /** The server has taken note of what we listen for. */
  acknowledged(): void
  /** Resolves when the server tells changes of this resource as well, and of exactly the wanted ones. */
  follow(uri: string): Promise<void>
  unfollow(uri: string): void
}

export type ListeningParts = {
  readonly clock: Clock
  readonly closing: AbortSignal
  request(params: ListenParams, signal: AbortSignal): Promise<Answer>
  /** Something may have changed while nobody listened. */
  onGap(): void
}

type ListenParams = {
  readonly notifications: {
    toolsListChanged: true
    promptsListChanged: true
    resourcesListChanged: true
    resourceSubscriptions?: string[]
  }
}

/** One standing request. The next one takes over only when it has been acknowledged. */
type Standing = { readonly controller: AbortController; readonly waiters: PromiseWithResolvers<void>[] }

const retry = { first: 1000, most: 60_000, factor: 2 }

/** The newer era tells changes only to those who listen. A server without subscriptions refuses, and is left alone. */
export function createListening(parts: ListeningParts): Listening {
  const { clock, closing } = parts
  const wanted = new Set<string>()
  let standing: Standing | undefined
  let coming: Standing | undefined
  let gathering: PromiseWithResolvers<void>[] | undefined
  let missed = false

  listen(1, [])
  return {
    acknowledged,
    follow(uri) {
      wanted.add(uri)
      const waiter = Promise.withResolvers<void>()
      listenSoon(waiter)
      return waiter.promise
    },
    unfollow(uri) {
      if (wanted.delete(uri)) listenSoon()
    },
  }

  /** Many changes at once are one request. */
  function listenSoon(waiter?: PromiseWithResolvers<void>): void {
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
  function listen(attempt: number, waiters: PromiseWithResolvers<void>[]): void {
    const before = coming
    const next: Standing = { controller: new AbortController(), waiters: [...(before?.waiters ?? []), ...waiters] }
    coming = next
    before?.controller.abort()
    const onAbort = () => next.controller.abort()
    closing.addEventListener('abort', onAbort, { once: true })
    if (closing.aborted) onAbort()
    parts
      .request(toParams(wanted), next.controller.signal)
      .then(
        (answer) => ended(next, answer, attempt),
        (error: unknown) => ended(next, toGatewayError(error), attempt),
      )
      .finally(() => closing.removeEventListener('abort', onAbort))
  }

  function acknowledged(): void {
    const next = coming
    if (!next) return
    coming = undefined
    standing?.controller.abort()
    standing = next
    for (const waiter of next.waiters) waiter.resolve()
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
    const problem = new GatewayError('method-not-found', 'The server does not tell changes of resources')
    for (const waiter of which.waiters) waiter.reject(how instanceof GatewayError ? how : problem)
    if (refused || closing.aborted) return
    const next = wasStanding ? 1 : attempt + 1
    clock.after(backoffDelay(next, retry), () => {
      if (!coming && !standing && !closing.aborted) listen(next, [])
    })
  }
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

import { GatewayError, toGatewayError } from '../contract/errors.ts'
import { backoffDelay } from '../lib/backoff.ts'
import type { Clock } from '../lib/clock.ts'
import { isObject } from '../lib/json.ts'
import { onAbort } from '../lib/signals.ts'
import type { Answer } from '../wire/answer.ts'

export type Listening = {
  /** Resolves when the server has confirmed that it reports changes of this resource. */
  follow(uri: string): Promise<void>
  unfollow(uri: string): void
}

export type ListeningParts = {
  readonly clock: Clock
  readonly closing: AbortSignal
  /** Timeout of an acknowledgement, in milliseconds. */
  readonly acknowledgeTimeoutMs: number
  /** A long request. The server first acknowledges it and names the notifications that it will send. */
  request(params: ListenParams, how: ListenOptions): Promise<Answer>
  /** Changes may have been missed while no request was active. */
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

/** One long `subscriptions/listen` request. The next request replaces it when it has been acknowledged. */
type ListenRequest = { readonly controller: AbortController; readonly waiters: Waiter[] }
type Waiter = { readonly uri: string; agree(): void; fail(error: GatewayError): void }

const retry = { first: 1000, most: 60_000, factor: 2 }

/** The newer era reports changes only on a `subscriptions/listen` request. If the server refuses it, there is no retry. */
export function createListening(parts: ListeningParts): Listening {
  const { clock, closing } = parts
  const wanted = new Set<string>()
  let active: ListenRequest | undefined
  let pending: ListenRequest | undefined
  let queued: Waiter[] | undefined
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
      const late = () => fail(new GatewayError('call-timeout', 'The server did not confirm the subscription in time'))
      const cancel = clock.after(parts.acknowledgeTimeoutMs, late)
      listenSoon({ uri, agree: resolve, fail })
      return promise.finally(cancel)
    },
    unfollow(uri) {
      if (wanted.delete(uri)) listenSoon()
    },
  }

  /** Several changes in the same tick share one request. */
  function listenSoon(waiter?: Waiter): void {
    if (!queued) {
      queueMicrotask(() => {
        const waiters = queued ?? []
        queued = undefined
        listen(1, waiters)
      })
    }
    queued ??= []
    if (waiter) queued.push(waiter)
  }

  /** Sends a request for all wanted resources. It replaces a request that has not been acknowledged yet. */
  function listen(attempt: number, waiters: Waiter[]): void {
    const before = pending
    const next: ListenRequest = { controller: new AbortController(), waiters: [...(before?.waiters ?? []), ...waiters] }
    pending = next
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

  function acknowledged(next: ListenRequest, honoured: unknown): void {
    if (next !== pending) return
    pending = undefined
    active?.controller.abort()
    active = next
    for (const waiter of next.waiters) {
      if (isHonoured(waiter.uri, honoured)) waiter.agree()
      else waiter.fail(notReported())
    }
    if (missed) parts.onGap()
    missed = false
  }

  function ended(which: ListenRequest, how: Answer | GatewayError, attempt: number): void {
    if (which !== pending && which !== active) return // a newer request replaced this one
    const wasActive = which === active
    if (which === pending) pending = undefined
    if (wasActive) active = undefined
    missed = true
    const refused = !(how instanceof GatewayError) && how.kind === 'error'
    for (const waiter of which.waiters) waiter.fail(how instanceof GatewayError ? how : notReported())
    if (refused || closing.aborted) return
    const next = wasActive ? 1 : attempt + 1
    clock.after(backoffDelay(next, retry), () => {
      if (!pending && !active && !closing.aborted) listen(next, [])
    })
  }
}

function notReported(): GatewayError {
  return new GatewayError('method-not-found', 'The server does not report changes of this resource')
}

/** An acknowledgement without a list of notifications confirms all of them. */
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

import { GatewayError } from '../contract/errors.ts'
import type { Link } from './link.ts'

/** Who wants to hear when a resource changes, until the signal is aborted. */
export type Subscriber = { readonly signal: AbortSignal; onUpdated(uri: string): void }

export type Subscriptions = {
  /** Resolves when the server has been asked to tell changes of it. */
  add(uri: string, subscriber: Subscriber, link: Link): Promise<void>
  /** A new link knows of no subscription: they are made again. */
  renew(link: Link): void
  updated(uri: string): void
}

const maxUris = 1000
const maxPerUri = 10_000

/** Many callers, one subscription: the server hears of the first to come and of the last to go. */
export function createSubscriptions(parts: { current(): Link | undefined }): Subscriptions {
  const byUri = new Map<string, Set<Subscriber>>()

  return {
    async add(uri, subscriber, link) {
      const known = byUri.get(uri)
      if (!known && byUri.size >= maxUris) throw new GatewayError('limit-exceeded', 'Too many resources are followed')
      if (known && known.size >= maxPerUri) throw new GatewayError('limit-exceeded', 'Too many follow this resource')
      const subscribers = known ?? new Set()
      byUri.set(uri, subscribers)
      subscribers.add(subscriber)
      subscriber.signal.addEventListener('abort', () => remove(uri, subscriber), { once: true })
      try {
        if (!known) await link.follow(uri)
      } catch (error) {
        remove(uri, subscriber)
        throw error
      }
      if (subscriber.signal.aborted) remove(uri, subscriber)
    },
    renew(link) {
      for (const uri of byUri.keys()) link.follow(uri).catch(() => {}) // told as a change of the list, if at all
    },
    updated(uri) {
      for (const [followed, subscribers] of byUri) {
        if (!isPartOf(uri, followed)) continue
        for (const subscriber of subscribers) subscriber.onUpdated(uri)
      }
    },
  }

  function remove(uri: string, subscriber: Subscriber): void {
    const subscribers = byUri.get(uri)
    if (!subscribers?.delete(subscriber) || subscribers.size > 0) return
    byUri.delete(uri)
    parts.current()?.unfollow(uri)
  }
}

/** A server may tell of a part of what was asked for. */
function isPartOf(uri: string, followed: string): boolean {
  return uri === followed || uri.startsWith(followed.endsWith('/') ? followed : `${followed}/`)
}

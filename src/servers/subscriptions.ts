import { GatewayError } from '../contract/errors.ts'
import { onAbort } from '../lib/signals.ts'
import type { Link } from './link.ts'

/** Who wants to hear when a resource changes, until the signal is aborted. */
export type Subscriber = { readonly signal: AbortSignal; onUpdated(uri: string): void }

/** What a link can do for those who follow resources. */
export type Following = Pick<Link, 'follow' | 'unfollow'>

export type Subscriptions = {
  /** Resolves when the server has agreed to tell changes of it. */
  add(uri: string, subscriber: Subscriber, link: Following): Promise<void>
  /** A new link, or a new session on it, knows of no subscription: they are made again. */
  renew(link: Following): void
  updated(uri: string): void
}

type Followed = { readonly subscribers: Set<Subscriber>; agreed: Promise<void> }

const maxUris = 1000
const maxPerUri = 10_000
const maxUriLength = 8192

/** Many callers, one subscription: the server hears of the first to come and of the last to go. */
export function createSubscriptions(parts: { current(): Following | undefined }): Subscriptions {
  const byUri = new Map<string, Followed>()
  const leaving = new Map<string, Promise<void>>()

  return {
    async add(uri, subscriber, link) {
      const known = byUri.get(uri)
      if (uri.length > maxUriLength) throw new GatewayError('limit-exceeded', 'This address is too long to be followed')
      if (!known && byUri.size >= maxUris) throw new GatewayError('limit-exceeded', 'Too many resources are followed')
      if (known && known.subscribers.size >= maxPerUri)
        throw new GatewayError('limit-exceeded', 'Too many follow this resource')
      const followed = known ?? { subscribers: new Set(), agreed: begin(uri, link) }
      byUri.set(uri, followed)
      followed.subscribers.add(subscriber)
      const unlink = onAbort(subscriber.signal, () => remove(uri, subscriber))
      try {
        await followed.agreed
      } catch (error) {
        unlink()
        remove(uri, subscriber)
        throw error
      }
    },
    renew(link) {
      for (const [uri, followed] of byUri) {
        followed.agreed = link.follow(uri)
        followed.agreed.catch(() => {}) // told as a change of the list, if at all
      }
    },
    updated(uri) {
      if (uri.length > maxUriLength) return
      for (const [uriFollowed, { subscribers }] of byUri) {
        if (!isPartOf(uri, uriFollowed)) continue
        for (const subscriber of subscribers) subscriber.onUpdated(uri)
      }
    },
  }

  /** Over HTTP two requests may overtake each other: the server must have forgotten before it is asked again. */
  async function begin(uri: string, link: Following): Promise<void> {
    await leaving.get(uri)
    await link.follow(uri)
  }

  function remove(uri: string, subscriber: Subscriber): void {
    const followed = byUri.get(uri)
    if (!followed?.subscribers.delete(subscriber) || followed.subscribers.size > 0) return
    byUri.delete(uri)
    const left = leave(uri, followed, parts.current()).finally(() => {
      if (leaving.get(uri) === left) leaving.delete(uri)
    })
    leaving.set(uri, left)
  }

  async function leave(uri: string, { agreed }: Followed, link: Following | undefined): Promise<void> {
    const refused = await agreed.then(
      () => false,
      () => true,
    )
    if (!refused) await link?.unfollow(uri)
  }
}

/** A server may tell of a part of what was asked for. */
function isPartOf(uri: string, followed: string): boolean {
  return uri === followed || uri.startsWith(followed.endsWith('/') ? followed : `${followed}/`)
}

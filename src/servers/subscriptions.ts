import { GatewayError } from '../contract/errors.ts'
import { onAbort } from '../lib/signals.ts'
import type { Subscriber } from '../wire/caller.ts'
import type { Link } from './link.ts'

/** The functions of a link that subscriptions need. */
export type Following = Pick<Link, 'follow' | 'unfollow'>

export type Subscriptions = {
  /** Resolves when the server has confirmed the subscription. */
  add(uri: string, subscriber: Subscriber, link: Following): Promise<void>
  /** Subscribes again, because a new link or MCP session starts without subscriptions. */
  renew(link: Following): void
  updated(uri: string): void
}

type Followed = { readonly subscribers: Set<Subscriber>; agreed: Promise<void> }

const maxUris = 1000
const maxPerUri = 10_000
const maxUriLength = 8192

/** Callers share one subscription per resource: the first caller starts it, and the last one ends it. */
export function createSubscriptions(parts: { current(): Following | undefined }): Subscriptions {
  const byUri = new Map<string, Followed>()
  const leaving = new Map<string, Promise<void>>()

  return {
    async add(uri, subscriber, link) {
      const known = byUri.get(uri)
      if (uri.length > maxUriLength)
        throw new GatewayError('limit-exceeded', `The URI of the resource has more than ${maxUriLength} characters`)
      if (!known && byUri.size >= maxUris)
        throw new GatewayError('limit-exceeded', `More than ${maxUris} resources of this server are subscribed`)
      if (known && known.subscribers.size >= maxPerUri)
        throw new GatewayError('limit-exceeded', `This resource has more than ${maxPerUri} subscribers`)
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
        followed.agreed.catch(() => {}) // a failed renewal is not reported
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

  /** Waits for the end of an unsubscribe request: over HTTP it could otherwise arrive after the new subscribe request. */
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

/** A server may report an update of a sub-resource of the subscribed URI. */
function isPartOf(uri: string, followed: string): boolean {
  return uri === followed || uri.startsWith(followed.endsWith('/') ? followed : `${followed}/`)
}

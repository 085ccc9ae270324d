import type { ServerResponse } from 'node:http'
import { inFormOf } from '../catalog/catalog.ts'
import { GatewayError } from '../contract/errors.ts'
import type { JsonObject } from '../contract/json.ts'
import { type Principal, toPrincipalKey } from '../contract/principal.ts'
import type { Gateway } from '../gateway/gateway.ts'
import type { Clock } from '../lib/clock.ts'
import type { Delivery } from '../lib/delivery.ts'
import { isObject } from '../lib/json.ts'
import { type Subscriber, toCaller } from '../wire/caller.ts'
import { subscriptionKey } from '../wire/codec.ts'
import { toMessage } from '../wire/splice.ts'
import { sseKeepAlive, toSseEvent } from '../wire/sse.ts'
import { readCall, runCall } from './calls.ts'
import { type ChangeKind, type ListChanges, toChangeMethod } from './list-changes.ts'
import { keepAliveMs } from './reply.ts'
import type { McpRequest } from './request.ts'

const maxSubscriptions = 4096
/** Limit for one principal, so that it cannot use all of them. */
const maxPerPrincipal = 1000
/** Resources in one subscription. A server accepts a thousand from all clients together. */
const maxFollowed = 100

/** `subscriptions/listen` of the stateless era: streams that report changes. */
export function createListening(parts: { gateway: Gateway; changes: ListChanges; clock: Clock }) {
  const { gateway, changes, clock } = parts
  const subscriptions = new Map<() => void, Principal>()

  return {
    open,
    /** A token was revoked: ends the streams that were opened with it. */
    endOf(principal: Principal) {
      for (const [end, by] of subscriptions) if (by === principal) end()
    },
    close() {
      for (const end of subscriptions.keys()) end()
    },
  }

  function countOf(principal: Principal): number {
    if (subscriptions.size < maxPerPrincipal) return 0
    const key = toPrincipalKey(principal)
    return [...subscriptions.values()].filter((by) => toPrincipalKey(by) === key).length
  }

  /** Opens a stream that reports changes until one side closes it. */
  async function open(request: McpRequest, id: string): Promise<void> {
    const { principal, selector, params, reply, delivery } = request
    gateway.catalog.view(principal, selector) // throws for an unknown address
    if (subscriptions.size >= maxSubscriptions || countOf(principal) >= maxPerPrincipal)
      throw new GatewayError('limit-exceeded', 'Too many open subscriptions')
    const wanted = isObject(params.notifications) ? params.notifications : {}
    const honoured = changeKinds.filter((kind) => wanted[`${kind}ListChanged`] === true)
    const meta = `"_meta":{"${subscriptionKey}":${id}}`
    const stopWatching = honoured.length > 0 ? changes.watch(principal, selector, tellChanges) : () => {}
    const closed = new AbortController()
    const response = reply.stream()
    const end = () => {
      if (!response.writableEnded)
        response.end(toSseEvent(toMessage(id, 'result', Buffer.from(`{"resultType":"complete",${meta}}`))))
      delivery.settle()
    }
    subscriptions.set(end, principal)
    response.on('close', () => {
      subscriptions.delete(end)
      closed.abort()
      stopWatching()
    })
    keepAlive(response, delivery)
    let early: string[] | undefined = []
    const followed = await followAll(request, wanted.resourceSubscriptions, { signal: closed.signal, onUpdated })
    const filter = { ...toFilter(honoured), ...(followed.length > 0 && { resourceSubscriptions: followed }) }
    const first = `{"notifications":${JSON.stringify(filter)},${meta}}`
    const waited = [toNotification('notifications/subscriptions/acknowledged', first), ...early]
    early = undefined
    for (const message of waited) write(message)

    function tellChanges(changed: readonly ChangeKind[]): void {
      for (const kind of changed) if (honoured.includes(kind)) write(toNotification(toChangeMethod(kind), `{${meta}}`))
    }
    function onUpdated(uri: string): void {
      write(toNotification('notifications/resources/updated', `{"uri":${JSON.stringify(uri)},${meta}}`))
    }
    /** Messages are held back until the acknowledgement was sent. */
    function write(message: string): void {
      if (early) return void (early.length < maxFollowed && early.push(message))
      if (response.destroyed || response.writableEnded) return
      if (!delivery.write(toSseEvent(message))) response.destroy()
    }
  }

  /** Subscriptions are calls. The acknowledgement leaves out those that were refused. */
  async function followAll(
    { principal, selector }: McpRequest,
    wanted: unknown,
    subscriber: Subscriber,
  ): Promise<string[]> {
    const uris = Array.isArray(wanted) ? wanted.filter((uri) => typeof uri === 'string').slice(0, maxFollowed) : []
    const tried = uris.map(async (uri) => {
      const call = readCall('resources/subscribe', { uri })
      const onUpdated = (updated: string) => subscriber.onUpdated(inFormOf(uri, updated))
      const caller = toCaller({ signal: subscriber.signal, subscriber: { ...subscriber, onUpdated } })
      const answer = await runCall({ gateway }, { principal, selector }, call, caller)
      return answer.kind === 'result' ? [uri] : []
    })
    const ended = await Promise.allSettled(tried)
    return ended.flatMap((each) => (each.status === 'fulfilled' ? each.value : []))
  }

  function keepAlive(response: ServerResponse, delivery: Delivery): void {
    clock.after(keepAliveMs, () => {
      if (response.destroyed || response.writableEnded) return
      delivery.write(sseKeepAlive)
      keepAlive(response, delivery)
    })
  }
}

const changeKinds: readonly ChangeKind[] = ['tools', 'prompts', 'resources']

function toFilter(kinds: readonly ChangeKind[]): JsonObject {
  return Object.fromEntries(kinds.map((kind) => [`${kind}ListChanged`, true]))
}

function toNotification(method: string, params: string): string {
  return `{"jsonrpc":"2.0","method":"${method}","params":${params}}`
}

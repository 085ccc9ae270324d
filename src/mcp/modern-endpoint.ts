import type { ServerResponse } from 'node:http'
import { GatewayError } from '../contract/errors.ts'
import type { JsonObject } from '../contract/json.ts'
import type { Gateway } from '../gateway/gateway.ts'
import type { Clock } from '../lib/clock.ts'
import { isObject } from '../lib/json.ts'
import { toResultAnswer } from '../wire/answer.ts'
import { readModernRequest, subscriptionKey, toDiscoverResult, toModernResult } from '../wire/modern.ts'
import { toMessage } from '../wire/splice.ts'
import { sseKeepAlive, toSseEvent } from '../wire/sse.ts'
import { readCall, runCall, toCallMethod } from './calls.ts'
import { capabilities } from './capabilities.ts'
import { type ChangeKind, type ListChanges, toChangeMethod } from './list-changes.ts'
import { isListMethod, listPage } from './lists.ts'
import { keepAliveMs } from './reply.ts'
import type { McpRequest } from './request.ts'
import { toErrorMessage } from './rpc-error.ts'

/** Lists are told to change as they change; until then they may be asked for again at no cost. */
const listTtlMs = 0
const maxSubscriptions = 4096
const maxUnread = 1024 * 1024

/** The stateless era: every request stands for itself, and a closed stream takes its request back. */
export function createModernEndpoint(parts: { gateway: Gateway; changes: ListChanges; clock: Clock }) {
  const { gateway, changes, clock } = parts
  const subscriptions = new Set<() => void>()

  async function handle(request: McpRequest): Promise<void> {
    const { envelope, reply, http, params } = request
    if (envelope.kind !== 'request') return reply.nothing()
    readModernRequest({ headers: http.headers, method: envelope.method, params })
    if (envelope.method === 'subscriptions/listen') return listen(request, envelope.id)
    try {
      reply.answer(toMessage(envelope.id, ...(await work(request, envelope.method))))
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
      if (error.code === 'call-cancelled') return reply.nothing()
      reply.answer(toErrorMessage(envelope.id, error), error.code === 'method-not-found' ? 404 : 200)
    }
  }

  async function work(request: McpRequest, method: string): Promise<['result' | 'error', Buffer]> {
    const { principal, selector, params, response, reply } = request
    if (method === 'server/discover') {
      gateway.catalog.view(principal, selector)
      return [
        'result',
        toResultAnswer(toDiscoverResult({ capabilities, version: gateway.version, ttlMs: listTtlMs })).bytes,
      ]
    }
    if (isListMethod(method)) {
      const answer = listPage(gateway.catalog.view(principal, selector), method, params)
      return ['result', toModernResult(answer, { ttlMs: listTtlMs })]
    }
    const call = readCall(toCallMethod(method), params)
    const gone = new AbortController()
    const onClose = () => gone.abort()
    response.on('close', onClose)
    try {
      const { notify } = reply
      const answer = await runCall(gateway, { principal, selector }, call, {
        signal: gone.signal,
        notify,
      })
      return [answer.kind, toModernResult(answer, method === 'resources/read' ? { ttlMs: listTtlMs } : undefined)]
    } finally {
      response.off('close', onClose)
    }
  }

  /** A long answer that tells changes until one side ends it. */
  function listen({ principal, selector, params, reply }: McpRequest, id: string): void {
    gateway.catalog.view(principal, selector) // an address that leads nowhere has nothing to tell
    if (subscriptions.size >= maxSubscriptions)
      throw new GatewayError('limit-exceeded', 'Too many subscriptions are open')
    const wanted = isObject(params.notifications) ? params.notifications : {}
    const honoured = changeKinds.filter((kind) => wanted[`${kind}ListChanged`] === true)
    const meta = `"_meta":{"${subscriptionKey}":${id}}`
    const response = reply.stream()
    const acknowledged = `{"notifications":${JSON.stringify(toFilter(honoured))},${meta}}`
    response.write(toSseEvent(toNotification('notifications/subscriptions/acknowledged', acknowledged)))
    const stopWatching = honoured.length > 0 ? changes.watch(principal, selector, tell) : () => {}
    function tell(changed: readonly ChangeKind[]): void {
      if (response.writableLength > maxUnread) return void response.destroy()
      for (const kind of changed.filter((each) => honoured.includes(each))) {
        response.write(toSseEvent(toNotification(toChangeMethod(kind), `{${meta}}`)))
      }
    }
    const end = () => {
      response.end(toSseEvent(toMessage(id, 'result', Buffer.from(`{"resultType":"complete",${meta}}`))))
    }
    subscriptions.add(end)
    response.on('close', () => {
      subscriptions.delete(end)
      stopWatching()
    })
    keepAlive(response)
  }

  function keepAlive(response: ServerResponse): void {
    clock.after(keepAliveMs, () => {
      if (response.destroyed || response.writableEnded) return
      response.write(sseKeepAlive)
      keepAlive(response)
    })
  }

  return {
    handle,
    close() {
      for (const end of subscriptions) end()
    },
  }
}

const changeKinds: readonly ChangeKind[] = ['tools', 'prompts', 'resources']

function toFilter(kinds: readonly ChangeKind[]): JsonObject {
  return Object.fromEntries(kinds.map((kind) => [`${kind}ListChanged`, true]))
}

function toNotification(method: string, params: string): string {
  return `{"jsonrpc":"2.0","method":"${method}","params":${params}}`
}

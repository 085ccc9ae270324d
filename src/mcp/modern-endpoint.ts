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
import { capabilities } from './capabilities.ts'
import type { ListChanges } from './list-changes.ts'
import { keepAliveMs } from './reply.ts'
import type { McpRequest } from './request.ts'
import { toErrorMessage } from './rpc-error.ts'
import { callTool, listTools, readToolCall } from './tools.ts'

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
    if (method === 'tools/list') {
      const answer = listTools(gateway.catalog.view(principal, selector), params)
      return ['result', toModernResult(answer, { ttlMs: listTtlMs })]
    }
    if (method !== 'tools/call')
      throw new GatewayError('method-not-found', `${method.slice(0, 100)} is not offered here`)
    const gone = new AbortController()
    const onClose = () => gone.abort()
    response.on('close', onClose)
    try {
      const { notify } = reply
      const answer = await callTool(gateway, { principal, selector }, readToolCall(params), {
        signal: gone.signal,
        notify,
      })
      return [answer.kind, toModernResult(answer)]
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
    const honoured: JsonObject = wanted.toolsListChanged === true ? { toolsListChanged: true } : {}
    const meta = `"_meta":{"${subscriptionKey}":${id}}`
    const response = reply.stream()
    const acknowledged = `{"notifications":${JSON.stringify(honoured)},${meta}}`
    response.write(toSseEvent(toNotification('notifications/subscriptions/acknowledged', acknowledged)))
    const stopWatching = honoured.toolsListChanged ? changes.watch(principal, selector, tell) : () => {}
    function tell(): void {
      if (response.writableLength > maxUnread) return void response.destroy()
      response.write(toSseEvent(toNotification('notifications/tools/list_changed', `{${meta}}`)))
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

function toNotification(method: string, params: string): string {
  return `{"jsonrpc":"2.0","method":"${method}","params":${params}}`
}

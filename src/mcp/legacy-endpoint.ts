import { GatewayError } from '../contract/errors.ts'
import type { Gateway } from '../gateway/gateway.ts'
import { type Answer, toResultAnswer } from '../wire/answer.ts'
import {
  legacyResourceNotFound,
  negotiateLegacy,
  sessionHeader,
  toInitializeResult,
  toLegacyResult,
} from '../wire/legacy.ts'
import { toMessage } from '../wire/splice.ts'
import { readCall, runCall, toCallMethod } from './calls.ts'
import { capabilities } from './capabilities.ts'
import { type ListChanges, toChangeMethod } from './list-changes.ts'
import { isListMethod, listPage } from './lists.ts'
import type { McpRequest } from './request.ts'
import { toErrorMessage } from './rpc-error.ts'
import type { McpSession, McpSessions } from './sessions.ts'

/** The era with sessions: `initialize` opens one, and everything else names it. */
export function createLegacyEndpoint(parts: { gateway: Gateway; sessions: McpSessions; changes: ListChanges }) {
  const { gateway, sessions, changes } = parts

  async function handle(request: McpRequest): Promise<void> {
    const { envelope, http, principal, selector, reply } = request
    if (envelope.kind === 'request' && envelope.method === 'initialize') return initialize(request, envelope.id)
    const id = http.headers[sessionHeader]
    if (typeof id !== 'string')
      throw new GatewayError('request-invalid', 'Mcp-Session-Id is missing: `initialize` first')
    const session = sessions.get(id, principal, selector)
    if (envelope.kind === 'request') return answer(request, session, envelope.id, envelope.method)
    if (envelope.kind === 'notification' && envelope.method === 'notifications/cancelled') cancel(request, session)
    reply.nothing()
  }

  function initialize(request: McpRequest, id: string): void {
    const { principal, selector, params, response, reply } = request
    gateway.catalog.view(principal, selector) // an address that leads nowhere is refused here already
    const revision = negotiateLegacy(params.protocolVersion)
    const session = sessions.create({ principal, selector, revision }, () => stopWatching())
    const stopWatching = changes.watch(principal, selector, (changed) => {
      for (const kind of changed) session.notify(toChangeMethod(kind))
    })
    response.setHeader(sessionHeader, session.id)
    const result = toInitializeResult({ revision, capabilities, version: gateway.version })
    reply.answer(toMessage(id, 'result', toResultAnswer(result).bytes))
  }

  async function answer(request: McpRequest, session: McpSession, id: string, method: string): Promise<void> {
    try {
      const answered = await work(request, session, id, method)
      request.reply.answer(toMessage(id, answered.kind, toLegacyResult(answered)))
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
      // Who took a request back does not want to hear of it again.
      if (error.code === 'call-cancelled') return request.reply.nothing()
      const rpc = error.code === 'resource-not-found' ? legacyResourceNotFound : undefined
      request.reply.answer(toErrorMessage(id, error, rpc))
    }
  }

  async function work(request: McpRequest, session: McpSession, id: string, method: string): Promise<Answer> {
    const { principal, selector, params } = request
    if (method === 'ping') return toResultAnswer({})
    if (isListMethod(method)) return listPage(gateway.catalog.view(principal, selector), method, params)
    const call = readCall(toCallMethod(method), params)
    const key = toIdKey(JSON.parse(id))
    if (session.inFlight.has(key))
      throw new GatewayError('request-invalid', 'A request with this id is still under way')
    const controller = new AbortController()
    session.inFlight.set(key, controller)
    try {
      const { notify } = request.reply
      return await runCall(gateway, { principal, selector }, call, {
        signal: controller.signal,
        notify,
      })
    } finally {
      session.inFlight.delete(key)
    }
  }

  /** Some clients cancel what has long been answered: that is nobody's business any more. */
  function cancel({ params }: McpRequest, session: McpSession): void {
    session.inFlight.get(toIdKey(params.requestId))?.abort()
  }

  return { handle }
}

/** One id can be written in several ways, `"\\u0061"` and `"a"`, and a client may name its call in another one. */
function toIdKey(id: unknown): string {
  return JSON.stringify(id ?? null)
}

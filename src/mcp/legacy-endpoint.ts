import { inFormOf } from '../catalog/catalog.ts'
import { GatewayError } from '../contract/errors.ts'
import type { CallMethod } from '../contract/permit.ts'
import type { Gateway } from '../gateway/gateway.ts'
import { isObject } from '../lib/json.ts'
import { type Answer, toResultAnswer } from '../wire/answer.ts'
import { type Caller, isLogLevel } from '../wire/caller.ts'
import {
  legacyResourceNotFound,
  negotiateLegacy,
  sessionHeader,
  toCapabilities,
  toInitializeResult,
  toLegacyResult,
} from '../wire/legacy.ts'
import { lackingIn } from '../wire/modern.ts'
import { toErrorMessage } from '../wire/rpc-error.ts'
import { toMessage, toPieces } from '../wire/splice.ts'
import { capabilityMissing, type McpCall, readCall, runCall, toCallMethod, toFailedResult } from './calls.ts'
import { toLegacyOffer } from './capabilities.ts'
import { createLegacyCaller } from './legacy-caller.ts'
import { type ListChanges, toChangeMethod } from './list-changes.ts'
import { isListMethod, listPage } from './lists.ts'
import type { Presenting } from './present.ts'
import type { McpRequest } from './request.ts'
import type { McpSession, McpSessions } from './sessions.ts'

export type LegacyParts = {
  readonly gateway: Gateway
  readonly sessions: McpSessions
  readonly changes: ListChanges
  readonly presenting: Presenting
}

/** The older era: `initialize` opens an MCP session, and every other request names it. */
export function createLegacyEndpoint(parts: LegacyParts) {
  const { gateway, sessions, changes, presenting } = parts

  async function handle(request: McpRequest): Promise<void> {
    const { envelope, http, principal, selector, reply } = request
    if (envelope.kind === 'request' && envelope.method === 'initialize') return initialize(request, envelope.id)
    const id = http.headers[sessionHeader]
    if (typeof id !== 'string')
      throw new GatewayError('request-invalid', 'The header Mcp-Session-Id is missing: send `initialize` first')
    const session = sessions.get(id, principal, selector)
    if (envelope.kind === 'request') return answer(request, session, envelope.id, envelope.method)
    if (envelope.kind === 'notification' && envelope.method === 'notifications/cancelled') cancel(request, session)
    if (envelope.kind === 'result' || envelope.kind === 'error') session.answered(envelope, request.body)
    reply.nothing()
  }

  function initialize(request: McpRequest, id: string): void {
    const { principal, selector, params, response, reply } = request
    const introduction = gateway.introduce(principal, selector) // throws for an unknown address
    const revision = negotiateLegacy(params.protocolVersion)
    const declared = toCapabilities(params.capabilities)
    const session = sessions.create({ principal, selector, revision, capabilities: declared }, () => stopWatching())
    const stopWatching = changes.watch(principal, selector, (changed) => {
      for (const kind of changed) session.notify(toChangeMethod(kind))
    })
    response.setHeader(sessionHeader, session.id)
    const { instructions } = introduction
    const capabilities = toLegacyOffer(introduction)
    const result = toInitializeResult({ revision, capabilities, version: gateway.version, instructions })
    reply.answer(toMessage(id, 'result', toResultAnswer(result).bytes))
  }

  async function answer(request: McpRequest, session: McpSession, id: string, method: string): Promise<void> {
    try {
      const answered = await work(request, session, id, method)
      request.reply.answer(toPieces(id, answered.kind, toLegacyResult(answered).bytes))
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
      // A cancelled request gets no answer.
      if (error.code === 'call-cancelled') return request.reply.nothing()
      const rpc = error.code === 'resource-not-found' ? legacyResourceNotFound : undefined
      request.reply.answer(toErrorMessage(id, error, rpc))
    }
  }

  async function work(request: McpRequest, session: McpSession, id: string, method: string): Promise<Answer> {
    const { principal, selector, params } = request
    if (method === 'ping') return toResultAnswer({})
    if (isListMethod(method)) {
      await gateway.introduced(principal, selector)
      return listPage(gateway.catalog.view(principal, selector), method, params)
    }
    if (method === 'logging/setLevel') return setLevel(session, params.level)
    if (method === 'resources/unsubscribe') return unfollow(session, params.uri)
    const call = withTask(readCall(toCallMethod(method, ownMethods), params), params.task)
    const key = toIdKey(JSON.parse(id))
    if (session.inFlight.has(key)) throw new GatewayError('request-invalid', 'A request with this id is still running')
    const controller = new AbortController()
    session.inFlight.set(key, controller)
    const caller = createLegacyCaller({ request, session, call, controller, presenting })
    try {
      if (method === 'resources/subscribe') return await follow(request, session, call, caller)
      const answered = await runCall(parts, { principal, selector }, call, caller)
      const required = lackingIn(answered)
      if (required) throw capabilityMissing(required)
      return answered
    } catch (error) {
      const missing = error instanceof GatewayError && error.code === 'capability-missing'
      // This era has no error code for it, so the model gets it as a failed result.
      if (missing && method === 'tools/call') return toFailedResult(error)
      throw error
    } finally {
      caller.close()
      session.inFlight.delete(key)
    }
  }

  function setLevel(session: McpSession, level: unknown): Answer {
    if (!isLogLevel(level))
      throw new GatewayError('arguments-invalid', `No such log level: ${String(level).slice(0, 50)}`)
    session.logFrom(level)
    return toResultAnswer({})
  }

  /** A subscription is a call. Its updates are sent on the stream of the session. */
  async function follow(
    { principal, selector }: McpRequest,
    session: McpSession,
    call: McpCall,
    caller: Caller,
  ): Promise<Answer> {
    if (session.followed.has(call.name)) return toResultAnswer({})
    if (session.followed.size >= maxFollowed)
      throw new GatewayError('limit-exceeded', `Too many subscriptions: an MCP session can have ${maxFollowed}`)
    const following = new AbortController()
    session.followed.set(call.name, following)
    const onUpdated = (uri: string) =>
      session.notify('notifications/resources/updated', { uri: inFormOf(call.name, uri) })
    try {
      const subscriber = { signal: following.signal, onUpdated }
      return await runCall(parts, { principal, selector }, call, { ...caller, subscriber })
    } catch (error) {
      session.followed.delete(call.name)
      throw error
    }
  }

  function unfollow(session: McpSession, uri: unknown): Answer {
    if (typeof uri !== 'string') throw new GatewayError('arguments-invalid', 'resources/unsubscribe needs a uri')
    session.followed.get(uri)?.abort()
    session.followed.delete(uri)
    return toResultAnswer({})
  }

  /** Ignores requests that have ended: some clients cancel those too. */
  function cancel({ params }: McpRequest, session: McpSession): void {
    session.inFlight.get(toIdKey(params.requestId))?.abort()
  }

  return { handle }
}

/** Of one MCP session. A server accepts a thousand from all sessions together. */
const maxFollowed = 100
const ownMethods: readonly CallMethod[] = ['resources/subscribe', 'tasks/get', 'tasks/result', 'tasks/cancel']

/** In this era the client asks for a task; in the newer one the server decides. */
function withTask(call: McpCall, task: unknown): McpCall {
  if (call.method !== 'tools/call' || !isObject(task)) return call
  const { ttl } = task
  return { ...call, input: { ...call.input, task: typeof ttl === 'number' ? { ttl } : {} } }
}

/** The same id can be written in several ways, such as `"\\u0061"` and `"a"`. */
function toIdKey(id: unknown): string {
  return JSON.stringify(id ?? null)
}

import type { CallRequest } from '../calls/calls.ts'
import type { Target } from '../catalog/catalog.ts'
import { GatewayError } from '../contract/errors.ts'
import type { JsonObject } from '../contract/json.ts'
import { type CallMethod, isTaskMethod } from '../contract/permit.ts'
import { type Principal, toPrincipalKey } from '../contract/principal.ts'
import type { Gateway } from '../gateway/gateway.ts'
import type { Clock } from '../lib/clock.ts'
import type { Ids } from '../lib/ids.ts'
import { isObject } from '../lib/json.ts'
import { type Answer, isToolError, memberText, toResultAnswer } from '../wire/answer.ts'
import { type Caller, isAtLeast, type Progress, toCaller } from '../wire/caller.ts'
import { tasksExtension } from '../wire/codec.ts'
import { checkMirrors } from '../wire/mirrors.ts'
import {
  type ModernCaller,
  readModernRequest,
  toDiscoverResult,
  toInputRequired,
  toModernResult,
} from '../wire/modern.ts'
import { toErrorMessage } from '../wire/rpc-error.ts'
import { toPieces } from '../wire/splice.ts'
import { capabilityMissing, type McpCall, readCall, runCall, toCallMethod } from './calls.ts'
import { toModernOffer } from './capabilities.ts'
import type { ListChanges } from './list-changes.ts'
import { createListening } from './listening.ts'
import { isListMethod, listPage } from './lists.ts'
import { createParkedCalls, type OpenRequest, type ParkingCaller, type Step } from './parked-calls.ts'
import type { Presenting } from './present.ts'
import type { McpRequest } from './request.ts'

/** Clients are notified of changes, so they need no time to live. */
const listTtlMs = 0

export type ModernParts = {
  readonly gateway: Gateway
  readonly changes: ListChanges
  readonly presenting: Presenting
  readonly clock: Clock
  readonly ids: Ids
}

/** The newer, stateless era: each request is complete, and closing its stream cancels it. */
export function createModernEndpoint(parts: ModernParts) {
  const { gateway, changes, clock, presenting } = parts
  const parkedCalls = createParkedCalls({ instance: gateway.instance, clock, ids: parts.ids })
  const listening = createListening({ gateway, changes, clock })

  async function handle(request: McpRequest): Promise<void> {
    const { envelope, reply } = request
    if (envelope.kind !== 'request') return reply.nothing()
    const caller = await readCaller(request, envelope.method)
    if (envelope.method === 'subscriptions/listen') return listening.open(request, envelope.id)
    try {
      const answer = await work(request, envelope.method, caller)
      reply.answer(toPieces(envelope.id, answer.kind, answer.bytes), toHttpStatus(answer))
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error
      if (error.code === 'call-cancelled') return reply.nothing()
      reply.answer(toErrorMessage(envelope.id, error), statusOf(error.entry.rpc))
    }
  }

  /** A call whose headers differ from its body is refused, and recorded like any refused call. */
  async function readCaller(request: McpRequest, method: string): Promise<ModernCaller> {
    const { http, params, principal, selector } = request
    try {
      return readModernRequest({ headers: http.headers, method, params })
    } catch (error) {
      if (!(error instanceof GatewayError) || error.code !== 'header-mismatch') throw error
      const who = { principal, selector, check: () => error }
      const call = findCall(method, params)
      if (call) await runCall(parts, who, call, toCaller({ signal: never })).catch(ignoreRefusal)
      throw error
    }
  }

  async function work(request: McpRequest, method: string, caller: ModernCaller): Promise<Answer> {
    const { principal, selector, params } = request
    if (method === 'server/discover') {
      const introduction = gateway.introduce(principal, selector)
      const { instructions } = introduction
      const facts = { capabilities: toModernOffer(introduction), version: gateway.version, instructions }
      return toResultAnswer(toDiscoverResult({ ...facts, ttlMs: listTtlMs }))
    }
    if (isListMethod(method)) {
      await gateway.introduced(principal, selector)
      const page = listPage(gateway.catalog.view(principal, selector), method, params)
      return toModernResult(page, { ttlMs: listTtlMs })
    }
    const call = readCall(toCallMethod(method, ownMethods), params)
    if (isTaskMethod(method)) demandTasks(caller.capabilities)
    const step = await attend(request, call, caller)
    if (step.kind === 'questions') return toInputRequired(step.questions, step.state)
    return toModernResult(step.answer, method === 'resources/read' ? { ttlMs: listTtlMs } : undefined)
  }

  /** Starts a call, or resumes a parked one. */
  async function attend(request: McpRequest, call: McpCall, caller: ModernCaller): Promise<Step> {
    const { principal, selector, params, response, reply, delivery } = request
    const { headers } = request.http
    const { requestState, inputResponses } = params
    const who = {
      principal,
      selector,
      check: (target: Target) => checkMirrors(target.mirrors, call.arguments, headers),
    }
    const open: OpenRequest = {
      owner: { who: () => JSON.stringify([toPrincipalKey(principal), selector]), method: call.method, params },
      onGone(listener) {
        response.on('close', listener)
        return () => response.off('close', listener)
      },
      tell(method, told) {
        if (method !== 'notifications/progress') return reply.notify(method, told)
        const { progressToken } = call
        if (progressToken !== undefined) reply.notify(method, { ...told, progressToken })
      },
      hearsProgress: call.progressToken !== undefined && reply.streams,
      onDelivered: delivery.onEnd,
    }
    const owns = parkedCalls.owns(requestState)
    if (owns && !parkedCalls.isLost(requestState)) return parkedCalls.resume(requestState, inputResponses, open)
    // Another instance made the state, or this one before a restart: an equal call joins the same approval.
    const wanted = owns ? { ...call, input: undefined } : call
    const facts = { call: wanted, declared: caller, presenting, principal }
    return parkedCalls.begin(open, (parking) => run(who, wanted, createModernCaller(parking, facts)))
  }

  /** A call that failed because its client lacks a capability gets the error that this era has for it. */
  async function run(who: Who, call: McpCall, caller: ModernCallerEnd): Promise<Answer> {
    const answer = await runCall(parts, who, call, caller)
    const required = caller.lacking()
    if (!required || !(answer.kind === 'error' || isToolError(answer))) return answer
    throw capabilityMissing(required)
  }

  return {
    handle,
    endOf: listening.endOf,
    close() {
      parkedCalls.close()
      listening.close()
    },
  }
}

/** The call in a request; undefined if the request is no call. */
function findCall(method: string, params: JsonObject): McpCall | undefined {
  try {
    return readCall(toCallMethod(method, ownMethods), params)
  } catch (error) {
    if (error instanceof GatewayError) return undefined
    throw error
  }
}

/** Any refusal, such as a tool that is not found: the error about the headers is returned instead. */
function ignoreRefusal(error: unknown): void {
  if (!(error instanceof GatewayError)) throw error
}

const never = new AbortController().signal

const ownMethods: readonly CallMethod[] = ['tasks/get', 'tasks/update', 'tasks/cancel']

function demandTasks({ extensions }: JsonObject): void {
  if (isObject(extensions) && isObject(extensions[tasksExtension])) return
  const requiredCapabilities = { extensions: { [tasksExtension]: {} } }
  throw new GatewayError('capability-missing', 'Requests about tasks require the declared capability for tasks', {
    requiredCapabilities,
  })
}

type Who = Pick<CallRequest, 'principal' | 'selector' | 'check'>
/** A caller that collects the capabilities its client lacks. */
type ModernCallerEnd = Caller & { lacking(): JsonObject | undefined }

type CallerFacts = {
  readonly call: McpCall
  readonly declared: ModernCaller
  readonly presenting: Presenting
  readonly principal: Principal
}

function createModernCaller(
  parking: ParkingCaller,
  { call, declared, presenting, principal }: CallerFacts,
): ModernCallerEnd {
  const { askFirst, tell, ...reached } = parking
  const { capabilities, logLevel } = declared
  let lacking: JsonObject | undefined
  const wants = (params: JsonObject) => logLevel !== undefined && isAtLeast(params.level, logLevel)
  const onProgress = (progress: Progress) => tell('notifications/progress', { ...progress })
  const caller: ModernCallerEnd = {
    ...reached,
    capabilities,
    logLevel,
    parks: true,
    lacks(required) {
      lacking = { ...lacking, ...required }
    },
    lacking: () => lacking,
    tell: (method, params) => void (method === 'notifications/message' && wants(params) && tell(method, params)),
    ...(call.progressToken !== undefined && { onProgress }),
    present: (approval, wait) =>
      presenting.show(approval, wait, { principal, method: call.method, caller: { ...caller, ask: askFirst } }),
  }
  return caller
}

/** Errors in the request itself also have an HTTP status. */
function statusOf(rpc: number): number {
  if (rpc === -32601) return 404
  return rpc <= -32020 && rpc >= -32029 ? 400 : 200
}

function toHttpStatus(answer: Answer): number {
  return answer.kind === 'error' ? statusOf(Number(memberText(answer, 'code'))) : 200
}

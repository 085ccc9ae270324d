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
import { type Caller, isAtLeast, muteCaller } from '../wire/caller.ts'
import { tasksExtension } from '../wire/codec.ts'
import { checkMirrors } from '../wire/mirrors.ts'
import {
  type ModernCaller,
  readModernRequest,
  toDiscoverResult,
  toInputRequired,
  toModernResult,
} from '../wire/modern.ts'
import type { Progress } from '../wire/peer.ts'
import { toErrorMessage } from '../wire/rpc-error.ts'
import { toPieces } from '../wire/splice.ts'
import { type CallHearing, capabilityMissing, type McpCall, readCall, runCall, toCallMethod } from './calls.ts'
import { toModernOffer } from './capabilities.ts'
import type { ListChanges } from './list-changes.ts'
import { createListening } from './listening.ts'
import { isListMethod, listPage } from './lists.ts'
import { createParkedCalls, type Step, type TalkEnd, type Waiting } from './parked-calls.ts'
import type { Presenting } from './present.ts'
import type { McpRequest } from './request.ts'

/** Lists are told to change as they change; until then they may be asked for again at no cost. */
const listTtlMs = 0

export type ModernParts = {
  readonly gateway: Gateway
  readonly changes: ListChanges
  readonly presenting: Presenting
  readonly clock: Clock
  readonly ids: Ids
}

/** The stateless era: every request stands for itself, and a closed stream takes its request back. */
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
      if (call) await runCall(gateway, who, call, { signal: never, caller: muteCaller }).catch(ignoreRefusal)
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

  /** A call from its start, or taken up again where it waits for an answer. */
  async function attend(request: McpRequest, call: McpCall, caller: ModernCaller): Promise<Step> {
    const { principal, selector, params, response, reply, delivery } = request
    const { headers } = request.http
    const { requestState, inputResponses } = params
    const who = {
      principal,
      selector,
      check: (target: Target) => checkMirrors(target.mirrors, call.arguments, headers),
    }
    const waiting: Waiting = {
      binding: { who: () => JSON.stringify([toPrincipalKey(principal), selector]), method: call.method, params },
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
      onEnd: delivery.onEnd,
    }
    const owns = parkedCalls.owns(requestState)
    if (owns && !parkedCalls.isLost(requestState)) return parkedCalls.resume(requestState, inputResponses, waiting)
    // Another instance asked, or this one before it was started again: the same call joins its question.
    const wanted = owns ? { ...call, input: undefined } : call
    const heard = { call: wanted, declared: caller, presenting, principal }
    return parkedCalls.begin(waiting, (end) => run(who, wanted, toHearing(end, heard)))
  }

  /** A call that failed over a question which its caller cannot be asked is refused as this era wants it. */
  async function run(who: Who, call: McpCall, { lacking, ...hearing }: ModernHearing): Promise<Answer> {
    const answer = await runCall(gateway, who, call, hearing)
    const required = lacking()
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

/** The call that a request asks for, if it asks for one. */
function findCall(method: string, params: JsonObject): McpCall | undefined {
  try {
    return readCall(toCallMethod(method, ownMethods), params)
  } catch (error) {
    if (error instanceof GatewayError) return undefined
    throw error
  }
}

/** Such as a tool that is not found: the caller is told of its headers all the same. */
function ignoreRefusal(error: unknown): void {
  if (!(error instanceof GatewayError)) throw error
}

const never = new AbortController().signal

const ownMethods: readonly CallMethod[] = ['tasks/get', 'tasks/update', 'tasks/cancel']

function demandTasks({ extensions }: JsonObject): void {
  if (isObject(extensions) && isObject(extensions[tasksExtension])) return
  const requiredCapabilities = { extensions: { [tasksExtension]: {} } }
  throw new GatewayError('capability-missing', 'Tasks are for clients that declare them', { requiredCapabilities })
}

type Who = Pick<CallRequest, 'principal' | 'selector' | 'check'>
type ModernHearing = CallHearing & { lacking(): JsonObject | undefined }

type Heard = {
  readonly call: McpCall
  readonly declared: ModernCaller
  readonly presenting: Presenting
  readonly principal: Principal
}

function toHearing(end: TalkEnd, { call, declared, presenting, principal }: Heard): ModernHearing {
  const { signal, ask, askFirst, tell, hearsProgress, onEnd } = end
  const { capabilities, logLevel } = declared
  let lacking: JsonObject | undefined
  const hears = (params: JsonObject) => logLevel !== undefined && isAtLeast(params.level, logLevel)
  const onProgress = (progress: Progress) => tell('notifications/progress', { ...progress })
  const caller: Caller = {
    capabilities,
    logLevel,
    parks: true,
    ask,
    lacks(required) {
      lacking = { ...lacking, ...required }
    },
    tell: (method, params) => void (method === 'notifications/message' && hears(params) && tell(method, params)),
  }
  return {
    signal,
    caller,
    ...(call.progressToken !== undefined && { onProgress }),
    present: presenting.to({
      principal,
      caller: { ...caller, ask: askFirst },
      method: call.method,
      hearsProgress,
      onProgress,
    }),
    addressOf: presenting.addressOf,
    delivery: { onEnd },
    lacking: () => lacking,
  }
}

/** What is wrong with a request as such is said by the status as well. */
function statusOf(rpc: number): number {
  if (rpc === -32601) return 404
  return rpc <= -32020 && rpc >= -32029 ? 400 : 200
}

function toHttpStatus(answer: Answer): number {
  return answer.kind === 'error' ? statusOf(Number(memberText(answer, 'code'))) : 200
}

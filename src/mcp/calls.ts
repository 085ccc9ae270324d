import { type CallOptions, type CallOutcome, type CallRequest, waiting } from '../calls/calls.ts'
import { approvalStatusName, type ViewSelector, waitForApprovalName } from '../catalog/catalog.ts'
import type { Approval } from '../contract/approval.ts'
import { GatewayError, withoutOwn } from '../contract/errors.ts'
import type { JsonObject } from '../contract/json.ts'
import { type CallMethod, isTaskMethod } from '../contract/permit.ts'
import type { Gateway } from '../gateway/gateway.ts'
import { isObject } from '../lib/json.ts'
import { type Answer, toResultAnswer } from '../wire/answer.ts'
import type { Caller } from '../wire/caller.ts'
import { capabilitiesKey } from '../wire/codec.ts'
import { type CallMeta, readMeta, splitCapabilities } from '../wire/meta.ts'

/** The requests that are calls: decided, recorded and sent on. */
const callMethods: Readonly<Record<string, CallMethod>> = {
  'tools/call': 'tools/call',
  'prompts/get': 'prompts/get',
  'resources/read': 'resources/read',
  'completion/complete': 'completion/complete',
}

/** `further` are those that only one era has. */
export function toCallMethod(method: string, further: readonly CallMethod[] = []): CallMethod {
  const known = Object.hasOwn(callMethods, method) ? callMethods[method] : further.find((each) => each === method)
  if (known) return known
  throw new GatewayError('method-not-found', `${method.slice(0, 100)} is not offered here`)
}

export type McpCall = CallMeta & {
  readonly method: CallMethod
  readonly name: string
  readonly arguments: JsonObject
  /** Answers to questions of a round that the gateway knows nothing of. */
  readonly input: JsonObject | undefined
  readonly progressToken: string | number | undefined
}

/** What belongs to the call itself; what belongs to this hop only stays here. */
export function readCall(method: CallMethod, params: JsonObject): McpCall {
  const meta = isObject(params._meta) ? params._meta : {}
  const { progressToken } = meta
  const { inputResponses, requestState } = params
  const input = {
    ...(isObject(inputResponses) && { inputResponses }),
    ...(typeof requestState === 'string' && { requestState }),
  }
  return {
    method,
    ...readers[method](params),
    ...metaFor(method, readMeta(meta)),
    input: Object.keys(input).length > 0 ? input : undefined,
    progressToken: typeof progressToken === 'string' || typeof progressToken === 'number' ? progressToken : undefined,
  }
}

/**
 * A subscription belongs to a connection that many callers share: no `_meta` of one of them is sent with it. Rules judge
 * a request about a task by the call that started it, so what they would not see is not sent.
 */
function metaFor(method: CallMethod, { meta, trace }: CallMeta): CallMeta {
  if (method === 'resources/subscribe') return {}
  return { ...(trace && { trace }), ...(meta && !isTaskMethod(method) && { meta }) }
}

type Asked = { name: string; arguments: JsonObject }

const readers: Readonly<Record<CallMethod, (params: JsonObject) => Asked>> = {
  'tools/call': (params) => readNamed('tools/call', params),
  'prompts/get': (params) => readNamed('prompts/get', params),
  'resources/read': ({ uri }) => ({ name: toName('resources/read needs a uri', uri), arguments: {} }),
  'resources/subscribe': ({ uri }) => ({ name: toName('resources/subscribe needs a uri', uri), arguments: {} }),
  'tasks/get': readTask,
  'tasks/result': readTask,
  'tasks/update': (params) => {
    const { inputResponses } = params
    return { ...readTask(params), ...(isObject(inputResponses) && { arguments: { inputResponses } }) }
  },
  'tasks/cancel': readTask,
  'completion/complete': ({ ref, argument, context }) => {
    const reference = isObject(ref) ? ref : {}
    const name = reference.type === 'ref/prompt' ? reference.name : reference.uri
    const given = { ref: reference, argument: argument ?? null, ...(context !== undefined && { context }) }
    return { name: toName('completion/complete needs a ref', name), arguments: given }
  },
}

/** Rules judge it by the arguments that the task was started with, so it has none of its own. */
function readTask({ taskId }: JsonObject): Asked {
  return { name: toName('A task is asked for by its taskId', taskId), arguments: {} }
}

function readNamed(method: string, { name, arguments: given = {} }: JsonObject): Asked {
  if (!isObject(given)) throw new GatewayError('arguments-invalid', 'The arguments are an object')
  return { name: toName(`${method} needs a name`, name), arguments: given }
}

function toName(problem: string, name: unknown): string {
  if (typeof name === 'string' && name !== '') return name
  throw new GatewayError('arguments-invalid', problem)
}

/** What one era hears of a call while it runs. */
export type CallHearing = CallOptions & {
  readonly caller: Caller
  /** Where people answer a question that it waits for; a subscription waits for none. */
  readonly addressOf?: (approval: string) => string
}

export async function runCall(
  gateway: Pick<Gateway, 'calls'>,
  who: Pick<CallRequest, 'principal' | 'selector' | 'check'>,
  call: McpCall,
  hearing: CallHearing,
): Promise<Answer> {
  const { progressToken: _own, ...request } = call
  const { addressOf, ...options } = hearing
  const { caller, meta } = splitCaller(call, hearing)
  const outcome = await gateway.calls.run({ ...who, ...request, meta, surface: 'mcp' }, { ...options, caller })
  if (outcome.kind !== 'waiting') return toAnswer(outcome, call.method)
  const url = addressOf?.(outcome.approval.id) ?? ''
  if (call.method === 'tools/call') return toWaitingResult(outcome.approval, url, who.selector)
  const { code, message, details } = waiting(outcome.approval)
  throw new GatewayError(code, message, { ...details, url })
}

/** A server of the newer era gets what a caller declares with each call, so a part of it counts as `_meta`. */
function splitCaller(
  { method, meta }: McpCall,
  { caller }: CallHearing,
): { caller: Caller; meta?: JsonObject | undefined } {
  const { plain, beyond } = splitCapabilities(caller.capabilities)
  if (beyond === undefined) return { caller, meta }
  if (isTaskMethod(method)) return { caller: { ...caller, capabilities: plain }, meta }
  return { caller, meta: method === 'resources/subscribe' ? meta : { ...meta, [capabilitiesKey]: beyond } }
}

/** What Sallyport says instead of a tool is a failed result: the model reads it, and no output schema applies. */
function toAnswer(outcome: Exclude<CallOutcome, { kind: 'waiting' }>, method: CallMethod): Answer {
  if (outcome.kind === 'answered') return outcome.answer
  const { error, call } = outcome
  if (method !== 'tools/call' || isNoResult(error)) throw error
  return toFailedResult(error, call.counted ? undefined : call.id)
}

export function toFailedResult(error: GatewayError, call?: string): Answer {
  const { retryAfter } = error.details
  return toFailure(error, '', {
    ...(call !== undefined && { call }),
    ...(typeof retryAfter === 'number' && { retryAfter }),
  })
}

/** It has not ended: who makes the same call again goes on waiting, or gets what came of it. */
function toWaitingResult(approval: Approval, url: string, { kind }: ViewSelector): Answer {
  const { id, call } = approval
  const given = JSON.stringify({ id })
  const helpers = `${waitForApprovalName} ${given} waits for the answer, ${approvalStatusName} ${given} tells how it stands.`
  const where = kind === 'server' ? '' : `\n${helpers}` // at a server's own address there is nothing but its own
  return toFailure(waiting(approval), `\nA person answers at ${url}${where}`, { call, approval: id, url })
}

function toFailure(error: GatewayError, more: string, facts: JsonObject): Answer {
  return toResultAnswer({
    content: [{ type: 'text', text: `${error.code}: ${withoutOwn(error).message}\n${error.entry.hint}${more}` }],
    isError: true,
    _meta: { 'sallyport/error': { code: error.code, ...facts } },
  })
}

/** The server asks for what this caller did not say it could do. */
export function capabilityMissing(required: JsonObject): GatewayError {
  const named = Object.keys(required).join(', ') || 'one that it does not name'
  const message = `The server needs to ask something for which this client did not declare the capability: ${named}`
  return new GatewayError('capability-missing', message, { requiredCapabilities: required })
}

/** What is the caller's own mistake has a number of its own, and who took a call back wants no answer. */
function isNoResult({ code }: GatewayError): boolean {
  return (
    code === 'tool-not-found' ||
    code === 'toolset-not-found' ||
    code === 'server-not-found' ||
    code === 'capability-missing' ||
    code === 'header-mismatch' ||
    code === 'call-cancelled'
  )
}

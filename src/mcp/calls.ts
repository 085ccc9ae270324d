import { approvalStatusName, type CallOutcome, type CallRequest, waitForApprovalName, waiting } from '../calls/calls.ts'
import type { ViewSelector } from '../catalog/catalog.ts'
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
import type { Presenting } from './present.ts'
import { toReadable } from './server-errors.ts'

/** The requests that are calls: decided, recorded and sent on. */
const callMethods: Readonly<Record<string, CallMethod>> = {
  'tools/call': 'tools/call',
  'prompts/get': 'prompts/get',
  'resources/read': 'resources/read',
  'completion/complete': 'completion/complete',
}

/** `further`: methods that only one era has. */
export function toCallMethod(method: string, further: readonly CallMethod[] = []): CallMethod {
  const known = Object.hasOwn(callMethods, method) ? callMethods[method] : further.find((each) => each === method)
  if (known) return known
  throw new GatewayError('method-not-found', `The method ${method.slice(0, 100)} is not supported`)
}

export type McpCall = CallMeta & {
  readonly method: CallMethod
  readonly name: string
  readonly arguments: JsonObject
  /** Replies to questions of an earlier round, and its state, which belong to the server. */
  readonly input: JsonObject | undefined
  readonly progressToken: string | number | undefined
}

/** Reads what belongs to the call. What belongs to this connection only, such as the progress token, is not passed on. */
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

/** Without arguments: rules judge a request about a task by the arguments the task was started with. */
function readTask({ taskId }: JsonObject): Asked {
  return { name: toName('A request about a task needs a taskId', taskId), arguments: {} }
}

function readNamed(method: string, { name, arguments: given = {} }: JsonObject): Asked {
  if (!isObject(given)) throw new GatewayError('arguments-invalid', 'The arguments must be an object')
  return { name: toName(`${method} needs a name`, name), arguments: given }
}

function toName(problem: string, name: unknown): string {
  if (typeof name === 'string' && name !== '') return name
  throw new GatewayError('arguments-invalid', problem)
}

type RunParts = {
  readonly gateway: Pick<Gateway, 'calls' | 'config'>
  readonly presenting?: Pick<Presenting, 'addressOf'>
}

export async function runCall(
  { gateway, presenting }: RunParts,
  who: Pick<CallRequest, 'principal' | 'selector' | 'check'>,
  call: McpCall,
  waitingCaller: Caller,
): Promise<Answer> {
  const { progressToken: _own, ...request } = call
  const { caller, meta } = splitCaller(call, waitingCaller)
  const outcome = await gateway.calls.run({ ...who, ...request, meta, surface: 'mcp' }, caller)
  if (outcome.kind === 'answered') {
    const { errorsAsResults } = gateway.config.current()
    return toReadable(outcome.answer, outcome.call, { selector: who.selector, asked: call, errorsAsResults })
  }
  if (outcome.kind === 'refused') return toRefusal(outcome, call.method)
  const url = presenting?.addressOf(outcome.approval.id) ?? ''
  if (call.method === 'tools/call') return toWaitingResult(outcome.approval, url, who.selector)
  const { code, message, details } = waiting(outcome.approval)
  throw new GatewayError(code, message, { ...details, url })
}

/** Servers of the newer era get the capabilities with each call, so those beyond the protocol are judged as `_meta`. */
function splitCaller({ method, meta }: McpCall, caller: Caller): { caller: Caller; meta?: JsonObject | undefined } {
  const { plain, beyond } = splitCapabilities(caller.capabilities)
  if (beyond === undefined) return { caller, meta }
  if (isTaskMethod(method)) return { caller: { ...caller, capabilities: plain }, meta }
  return { caller, meta: method === 'resources/subscribe' ? meta : { ...meta, [capabilitiesKey]: beyond } }
}

/** An error of the gateway becomes a failed tool result: models read it, and no output schema applies to it. */
function toRefusal({ error, call }: Extract<CallOutcome, { kind: 'refused' }>, method: CallMethod): Answer {
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

/** The call has not ended: the same call made again continues it. */
function toWaitingResult(approval: Approval, url: string, { kind }: ViewSelector): Answer {
  const { id, call } = approval
  const given = JSON.stringify({ id })
  const helpers = `${waitForApprovalName} ${given} waits for the answer, ${approvalStatusName} ${given} returns its state.`
  const where = kind === 'server' ? '' : `\n${helpers}` // the address of one server does not offer these tools
  return toFailure(waiting(approval), `\nA person answers at ${url}${where}`, { call, approval: id, url })
}

function toFailure(error: GatewayError, more: string, facts: JsonObject): Answer {
  return toResultAnswer({
    content: [{ type: 'text', text: `${error.code}: ${withoutOwn(error).message}\n${error.entry.hint}${more}` }],
    isError: true,
    _meta: { 'sallyport/error': { code: error.code, ...facts } },
  })
}

/** The server requires a capability that this client did not declare. */
export function capabilityMissing(required: JsonObject): GatewayError {
  const named = Object.keys(required).join(', ') || 'an unnamed one'
  const message = `The server asks a question that requires a capability this client did not declare: ${named}`
  return new GatewayError('capability-missing', message, { requiredCapabilities: required })
}

/** Mistakes of the caller are JSON-RPC errors, not tool results; a cancelled call gets no answer. */
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

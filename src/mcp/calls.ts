import type { CallOptions, CallOutcome, CallRequest } from '../calls/calls.ts'
import { GatewayError } from '../contract/errors.ts'
import type { JsonObject } from '../contract/json.ts'
import type { CallMethod } from '../contract/permit.ts'
import type { Gateway } from '../gateway/gateway.ts'
import { isObject } from '../lib/json.ts'
import { type Answer, toResultAnswer } from '../wire/answer.ts'
import type { Caller } from '../wire/caller.ts'
import { isHopKey } from '../wire/modern.ts'

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

export type McpCall = {
  readonly method: CallMethod
  readonly name: string
  readonly arguments: JsonObject
  readonly meta: JsonObject | undefined
  /** Answers to questions of a round that the gateway knows nothing of. */
  readonly input: JsonObject | undefined
  readonly progressToken: string | number | undefined
}

/** What belongs to the call itself; what belongs to this hop only stays here. */
export function readCall(method: CallMethod, params: JsonObject): McpCall {
  const meta = isObject(params._meta) ? params._meta : {}
  const { progressToken } = meta
  const passedOn = Object.entries(meta).filter(([key]) => key !== 'progressToken' && !isHopKey(key))
  const { inputResponses, requestState } = params
  const input = {
    ...(isObject(inputResponses) && { inputResponses }),
    ...(typeof requestState === 'string' && { requestState }),
  }
  return {
    method,
    ...readers[method](params),
    meta: passedOn.length > 0 ? Object.fromEntries(passedOn) : undefined,
    input: Object.keys(input).length > 0 ? input : undefined,
    progressToken: typeof progressToken === 'string' || typeof progressToken === 'number' ? progressToken : undefined,
  }
}

type Asked = { name: string; arguments: JsonObject }

const readers: Readonly<Record<CallMethod, (params: JsonObject) => Asked>> = {
  'tools/call': (params) => readNamed('tools/call', params),
  'prompts/get': (params) => readNamed('prompts/get', params),
  'resources/read': ({ uri }) => ({ name: toName('resources/read needs a uri', uri), arguments: {} }),
  'resources/subscribe': ({ uri }) => ({ name: toName('resources/subscribe needs a uri', uri), arguments: {} }),
  'tasks/get': readTask,
  'tasks/result': readTask,
  'tasks/update': readTask,
  'tasks/cancel': readTask,
  'completion/complete': ({ ref, argument, context }) => {
    const reference = isObject(ref) ? ref : {}
    const name = reference.type === 'ref/prompt' ? reference.name : reference.uri
    const given = { ref: reference, argument: argument ?? null, ...(context !== undefined && { context }) }
    return { name: toName('completion/complete needs a ref', name), arguments: given }
  },
}

function readTask({ taskId, _meta, ...given }: JsonObject): Asked {
  return { name: toName('A task is asked for by its taskId', taskId), arguments: given }
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
export type CallHearing = CallOptions & { readonly caller: Caller }

export async function runCall(
  gateway: Pick<Gateway, 'call'>,
  who: Pick<CallRequest, 'principal' | 'selector' | 'check'>,
  call: McpCall,
  hearing: CallHearing,
): Promise<Answer> {
  const { progressToken: _own, ...request } = call
  return toAnswer(await gateway.call({ ...who, ...request, surface: 'mcp' }, hearing), call.method)
}

/** What Sallyport says instead of a tool is a failed result: the model reads it, and no output schema applies. */
function toAnswer(outcome: CallOutcome, method: CallMethod): Answer {
  if (outcome.kind === 'answered') return outcome.answer
  const { error, call } = outcome
  if (method !== 'tools/call' || isNoResult(error)) throw error
  return toFailedResult(error, call.id)
}

export function toFailedResult(error: GatewayError, call?: string): Answer {
  const { retryAfter } = error.details
  return toResultAnswer({
    content: [{ type: 'text', text: `${error.code}: ${error.message}\n${error.entry.hint}` }],
    isError: true,
    _meta: {
      'sallyport/error': {
        code: error.code,
        ...(call !== undefined && { call }),
        ...(typeof retryAfter === 'number' && { retryAfter }),
      },
    },
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

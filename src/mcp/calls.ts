import type { CallOutcome } from '../calls/calls.ts'
import type { ViewSelector } from '../catalog/catalog.ts'
import { GatewayError } from '../contract/errors.ts'
import type { JsonObject } from '../contract/json.ts'
import type { CallMethod } from '../contract/permit.ts'
import type { Principal } from '../contract/principal.ts'
import type { Gateway } from '../gateway/gateway.ts'
import { isObject } from '../lib/json.ts'
import { type Answer, toResultAnswer } from '../wire/answer.ts'
import type { Progress } from '../wire/peer.ts'

/** The requests that are calls: decided, recorded and sent on. */
const callMethods: Readonly<Record<string, CallMethod>> = {
  'tools/call': 'tools/call',
  'prompts/get': 'prompts/get',
  'resources/read': 'resources/read',
  'completion/complete': 'completion/complete',
}

export function toCallMethod(method: string): CallMethod {
  const known = Object.hasOwn(callMethods, method) ? callMethods[method] : undefined
  if (known) return known
  throw new GatewayError('method-not-found', `${method.slice(0, 100)} is not offered here`)
}

type McpCall = {
  readonly method: CallMethod
  readonly name: string
  readonly arguments: JsonObject
  readonly meta: JsonObject | undefined
  readonly progressToken: string | number | undefined
}

/** What belongs to the call itself; what belongs to this hop only stays here. */
export function readCall(method: CallMethod, params: JsonObject): McpCall {
  const meta = isObject(params._meta) ? params._meta : {}
  const { progressToken } = meta
  const passedOn = Object.entries(meta).filter(([key]) => key !== 'progressToken' && !key.startsWith(ownPrefix))
  return {
    method,
    ...readers[method](params),
    meta: passedOn.length > 0 ? Object.fromEntries(passedOn) : undefined,
    progressToken: typeof progressToken === 'string' || typeof progressToken === 'number' ? progressToken : undefined,
  }
}

const ownPrefix = 'io.modelcontextprotocol/'

type Asked = { name: string; arguments: JsonObject }

const readers: Readonly<Record<CallMethod, (params: JsonObject) => Asked>> = {
  'tools/call': (params) => readNamed('tools/call', params),
  'prompts/get': (params) => readNamed('prompts/get', params),
  'resources/read': ({ uri }) => ({ name: toName('resources/read needs a uri', uri), arguments: {} }),
  'completion/complete': ({ ref, argument, context }) => {
    const reference = isObject(ref) ? ref : {}
    const name = reference.type === 'ref/prompt' ? reference.name : reference.uri
    const given = { ref: reference, argument: argument ?? null, ...(context !== undefined && { context }) }
    return { name: toName('completion/complete needs a ref', name), arguments: given }
  },
}

function readNamed(method: string, { name, arguments: given = {} }: JsonObject): Asked {
  if (!isObject(given)) throw new GatewayError('arguments-invalid', 'The arguments are an object')
  return { name: toName(`${method} needs a name`, name), arguments: given }
}

function toName(problem: string, name: unknown): string {
  if (typeof name === 'string' && name !== '') return name
  throw new GatewayError('arguments-invalid', problem)
}

export async function runCall(
  gateway: Pick<Gateway, 'call'>,
  who: { principal: Principal; selector: ViewSelector },
  call: McpCall,
  options: { signal: AbortSignal; notify(method: string, params: JsonObject): void },
): Promise<Answer> {
  const { progressToken, ...request } = call
  const onProgress = (progress: Progress) =>
    options.notify('notifications/progress', { ...progress, progressToken: progressToken ?? null })
  const outcome = await gateway.call(
    { ...who, ...request, surface: 'mcp' },
    { signal: options.signal, onProgress: progressToken === undefined ? undefined : onProgress },
  )
  return toAnswer(outcome, call.method)
}

/** What Sallyport says instead of a tool is a failed result: the model reads it, and no output schema applies. */
function toAnswer(outcome: CallOutcome, method: CallMethod): Answer {
  if (outcome.kind === 'answered') return outcome.answer
  const { error, call } = outcome
  if (method !== 'tools/call' || isNoResult(error)) throw error
  const retryAfter = error.details.retryAfter
  return toResultAnswer({
    content: [{ type: 'text', text: `${error.code}: ${error.message}\n${error.entry.hint}` }],
    isError: true,
    _meta: {
      'sallyport/error': { code: error.code, call: call.id, ...(typeof retryAfter === 'number' && { retryAfter }) },
    },
  })
}

/** A name or an address that leads nowhere is the caller's mistake, and who took a call back wants no answer. */
function isNoResult({ code }: GatewayError): boolean {
  return (
    code === 'tool-not-found' ||
    code === 'toolset-not-found' ||
    code === 'server-not-found' ||
    code === 'call-cancelled'
  )
}

import type { CallOutcome } from '../calls/calls.ts'
import type { View, ViewSelector } from '../catalog/catalog.ts'
import { GatewayError } from '../contract/errors.ts'
import type { JsonObject } from '../contract/json.ts'
import type { Principal } from '../contract/principal.ts'
import type { Gateway } from '../gateway/gateway.ts'
import { isObject } from '../lib/json.ts'
import { type Answer, createAnswer, toResultAnswer } from '../wire/answer.ts'
import type { Progress } from '../wire/peer.ts'

/** `tools/list` from the view's ready-made pages. */
export function listTools(view: View, params: JsonObject): Answer {
  const index = pageIndex(view, params.cursor)
  const page = view.pages[index]
  if (!page) throw new GatewayError('arguments-invalid', 'The cursor is not valid any more: list from the start again')
  const next = index + 1 < view.pages.length ? `,"nextCursor":"${toCursor(view, index + 1)}"` : ''
  return createAnswer('result', Buffer.concat([opening, page, Buffer.from(`${next}}`)]))
}

const opening = Buffer.from('{"tools":')

/** The cursor carries the view: pages of another state never mix with these. */
function toCursor(view: View, index: number): string {
  return `${view.hash.slice(0, 16)}-${index}`
}

function pageIndex(view: View, cursor: unknown): number {
  if (cursor === undefined || cursor === null) return 0
  const [hash, index] = typeof cursor === 'string' ? cursor.split('-') : []
  return hash === view.hash.slice(0, 16) ? Number(index) : -1
}

export type ToolCall = {
  readonly name: string
  readonly arguments: JsonObject
  readonly meta: JsonObject | undefined
  readonly progressToken: string | number | undefined
}

/** What belongs to the call itself; what belongs to this hop only stays here. */
export function readToolCall(params: JsonObject): ToolCall {
  const { name, arguments: given = {} } = params
  if (typeof name !== 'string' || name === '') throw new GatewayError('arguments-invalid', 'tools/call needs a name')
  if (!isObject(given)) throw new GatewayError('arguments-invalid', 'The arguments of a tool are an object')
  const meta = isObject(params._meta) ? params._meta : {}
  const { progressToken } = meta
  const passedOn = Object.entries(meta).filter(([key]) => key !== 'progressToken' && !key.startsWith(ownPrefix))
  return {
    name,
    arguments: given,
    meta: passedOn.length > 0 ? Object.fromEntries(passedOn) : undefined,
    progressToken: typeof progressToken === 'string' || typeof progressToken === 'number' ? progressToken : undefined,
  }
}

const ownPrefix = 'io.modelcontextprotocol/'

export async function callTool(
  gateway: Pick<Gateway, 'call'>,
  who: { principal: Principal; selector: ViewSelector },
  call: ToolCall,
  options: { signal: AbortSignal; notify(method: string, params: JsonObject): void },
): Promise<Answer> {
  const { progressToken, ...request } = call
  const onProgress = (progress: Progress) =>
    options.notify('notifications/progress', { ...progress, progressToken: progressToken ?? null })
  const outcome = await gateway.call(
    { ...who, ...request, surface: 'mcp' },
    { signal: options.signal, onProgress: progressToken === undefined ? undefined : onProgress },
  )
  return toAnswer(outcome)
}

/** What Sallyport says instead of a tool is a failed result: the model reads it, and no output schema applies. */
function toAnswer(outcome: CallOutcome): Answer {
  if (outcome.kind === 'answered') return outcome.answer
  const { error, call } = outcome
  if (isNoResult(error)) throw error
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

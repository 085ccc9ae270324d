import type { ViewSelector } from '../catalog/catalog.ts'
import type { Call } from '../contract/call.ts'
import { type Answer, memberText, toResultAnswer } from '../wire/answer.ts'
import { isProtocolError } from '../wire/protocol-errors.ts'
import type { McpCall } from './calls.ts'

/** Where and how a call was made: at the address of one server nothing is replaced. */
type Where = {
  readonly selector: ViewSelector
  readonly asked: Pick<McpCall, 'method' | 'input'>
  readonly errorsAsResults: boolean
}

/**
 * Most programs hide a JSON-RPC error from the model, which could correct the call if it read the message. The error has
 * already been masked and cut. A call that asked for a task keeps its error: its result would have to be a task.
 */
export function toReadable(answer: Answer, { id, server }: Call, where: Where): Answer {
  const { selector, asked, errorsAsResults } = where
  if (answer.kind !== 'error' || !errorsAsResults || selector.kind === 'server') return answer
  if (asked.method !== 'tools/call' || asked.input?.task !== undefined || isProtocolError(answer)) return answer
  const { code, message } = answer.value()
  const data = memberText(answer, 'data')
  const said = typeof message === 'string' ? message : ''
  const about = `The server answered with the JSON-RPC error ${code}`
  return toResultAnswer({
    content: [{ type: 'text', text: `${said}\n${about}${data === undefined ? '.' : `, with the data ${data}`}` }],
    isError: true,
    _meta: { 'sallyport/error': { code: 'server-refused', call: id, server, rpc: code ?? null } },
  })
}

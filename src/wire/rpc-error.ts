import { type GatewayError, toErrorDocs, withoutOwn } from '../contract/errors.ts'
import { toMessage } from './splice.ts'

const parseError = -32700

/** A JSON-RPC error with code, hint, docs and details. Details of internal errors are only in the log. `id` is raw JSON. */
export function toErrorMessage(id: string, error: GatewayError, rpc: number = error.entry.rpc): Buffer {
  const { parse, ...facts } = error.details
  const { message } = withoutOwn(error)
  const body = {
    code: parse === true ? parseError : rpc,
    message,
    data: { code: error.code, hint: error.entry.hint, docs: toErrorDocs(error.code), ...facts },
  }
  return toMessage(id, 'error', Buffer.from(JSON.stringify(body)))
}

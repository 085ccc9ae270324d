import { type GatewayError, withoutOwn } from '../contract/errors.ts'
import { toMessage } from './splice.ts'

const parseError = -32700

/** A JSON-RPC error with its code, hint and facts; of a defect only the log tells more. `id` is raw JSON. */
export function toErrorMessage(id: string, error: GatewayError, rpc: number = error.entry.rpc): Buffer {
  const { parse, ...facts } = error.details
  const { message } = withoutOwn(error)
  const body = {
    code: parse === true ? parseError : rpc,
    message,
    data: { code: error.code, hint: error.entry.hint, ...facts },
  }
  return toMessage(id, 'error', Buffer.from(JSON.stringify(body)))
}

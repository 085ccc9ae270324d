import { ORPCError, ValidationError } from '@orpc/contract'
import {
  type ErrorCode,
  errorTable,
  GatewayError,
  toErrorBody,
  toGatewayError,
  withoutOwn,
} from '../contract/errors.ts'
import { toVisible } from '../shared/visible.ts'

/** Converts any error to the framework's error type, with the HTTP status of the error table. */
export function toWireError(error: unknown): ORPCError<ErrorCode, GatewayError> {
  const failure = toFailure(error)
  return new ORPCError(failure.code, { status: statusOf(failure), message: failure.message, data: failure })
}

/**
 * 409 instead of the status in the table in two cases. A repeated call was not sent, because the result of the first call
 * is unknown; this is not a server failure. And only a tool call can wait for approval; for other requests it is a conflict.
 */
function statusOf({ code, details, entry }: GatewayError): number {
  if (code === 'approval-waiting') return 409
  return code === 'call-unknown' && details.repeated === true ? 409 : entry.http
}

/** The body of an error answer. The message of an internal error is only logged, not sent. */
export function toWireBody(error: ORPCError<string, unknown>): unknown {
  const failure = error.data instanceof GatewayError ? error.data : toFailure(error)
  return toShownBody(withoutOwn(failure))
}

/** Makes invisible characters visible: people read the message, and it may contain text of servers or callers. */
function toShownBody(failure: GatewayError): ReturnType<typeof toErrorBody> {
  const body = toErrorBody(failure)
  return { error: { ...body.error, message: toVisible(body.error.message) } }
}

export function toFailure(error: unknown): GatewayError {
  if (error instanceof ORPCError && error.data instanceof GatewayError) return error.data
  if (!(error instanceof ORPCError) || error.status >= 500) return toGatewayError(error)
  const { cause } = error
  if (cause instanceof ValidationError) {
    const problems = cause.issues.map((issue) => `${toField(issue.path)}: ${issue.message}`)
    const field = toField(cause.issues[0]?.path)
    return new GatewayError('request-invalid', problems.slice(0, 10).join('; '), { field })
  }
  return new GatewayError('request-invalid', 'The request does not match the schema of this endpoint')
}

/** Such as `definition.url`, without our internal prefix `params`, `query`, `headers` or `body`. */
function toField(path: ValidationError['issues'][number]['path'] = []): string {
  const parts = path.map((part) => String(typeof part === 'object' ? part.key : part))
  const [first, ...rest] = parts
  const shown = first === 'params' || first === 'query' || first === 'headers' || first === 'body' ? rest : parts
  return shown.join('.') || 'body'
}

/** Seconds to wait, at least one; undefined if the error has no such time. */
export function toRetryAfter(error: GatewayError): string | undefined {
  const { retryAfter } = error.details
  if (errorTable[error.code].http !== 429 && typeof retryAfter !== 'number') return undefined
  return String(typeof retryAfter === 'number' ? Math.max(1, Math.ceil(retryAfter)) : 1)
}

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

/** What the handler of the contract carries to the wire: the status of the table, and the error itself. */
export function toWireError(error: unknown): ORPCError<ErrorCode, GatewayError> {
  const failure = toFailure(error)
  return new ORPCError(failure.code, { status: statusOf(failure), message: failure.message, data: failure })
}

/**
 * A repeated call whose first one nobody knows the end of was not tried: that is no failure of a server. What only a call
 * of a tool can wait for is in the way of everything else.
 */
function statusOf({ code, details, entry }: GatewayError): number {
  if (code === 'approval-waiting') return 409
  return code === 'call-unknown' && details.repeated === true ? 409 : entry.http
}

/** The body of every error; the message of a defect stays in the log. */
export function toWireBody(error: ORPCError<string, unknown>): unknown {
  const failure = error.data instanceof GatewayError ? error.data : toFailure(error)
  return toShownBody(withoutOwn(failure))
}

/** People read it: what a server said, or somebody asked for, may be in it. */
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
  return new GatewayError('request-invalid', 'The request does not have the form that this address expects')
}

/** `definition.url`, as people write it: how the parts of a request are kept apart is our own affair. */
function toField(path: ValidationError['issues'][number]['path'] = []): string {
  const parts = path.map((part) => String(typeof part === 'object' ? part.key : part))
  const [first, ...rest] = parts
  const shown = first === 'params' || first === 'query' || first === 'headers' || first === 'body' ? rest : parts
  return shown.join('.') || 'body'
}

/** Seconds to wait, if the error knows; never less than one. */
export function toRetryAfter(error: GatewayError): string | undefined {
  const { retryAfter } = error.details
  if (errorTable[error.code].http !== 429 && typeof retryAfter !== 'number') return undefined
  return String(typeof retryAfter === 'number' ? Math.max(1, Math.ceil(retryAfter)) : 1)
}

import { type ErrorCode, type ErrorEntry, errorTable, isErrorCode } from './error-table.ts'
import { findSystemCode, toSystemReason } from './system-error.ts'

export { type ErrorCode, type ErrorEntry, errorTable, isErrorCode }

/**
 * How far a failed request to a server got. `unsent`: nothing reached the server. `refused`: the server refused the request
 * before it did anything. `sent`: the server may have carried out the request.
 */
export type Reach = 'unsent' | 'refused' | 'sent'

export type GatewayErrorOptions = ErrorOptions & { readonly reach?: Reach | undefined }

export class GatewayError extends Error {
  readonly code: ErrorCode
  /** Data for programs. They must not contain secrets or raw text of a server. */
  readonly details: Readonly<Record<string, unknown>>
  /** Undefined for an error that is not about a request to a server. */
  readonly reach: Reach | undefined

  constructor(code: ErrorCode, message: string, details: Record<string, unknown> = {}, options?: GatewayErrorOptions) {
    super(message, options)
    this.name = 'GatewayError'
    this.code = code
    this.details = details
    this.reach = options?.reach
  }

  /** A copy of the error with another reach. */
  withReach(reach: Reach): GatewayError {
    return new GatewayError(this.code, this.message, this.details, { cause: this, reach })
  }

  get entry(): ErrorEntry {
    return errorTable[this.code]
  }
}

/** The error for a recorded code and message. */
export function recall(code: string, message: string): GatewayError {
  return new GatewayError(isErrorCode(code) ? code : 'internal', message)
}

export function toGatewayError(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error
  if (findSystemCode(error) !== undefined) return toFileFailure(error)
  const message = error instanceof Error ? error.message : String(error)
  return new GatewayError('internal', message, {}, { cause: error })
}

/** For a full disk, a read-only folder or a missing permission. The message contains the path, for operators. */
function toFileFailure(error: unknown): GatewayError {
  const reason = toSystemReason(error)
  const path = error instanceof Error && 'path' in error ? String(error.path) : undefined
  const message = path === undefined ? `A file cannot be used: ${reason}` : `${path} cannot be used: ${reason}`
  return new GatewayError('file-failed', message, { reason }, { cause: error })
}

/** The error for callers: messages of internal errors and file paths are only in the log. */
export function withoutOwn(error: GatewayError): GatewayError {
  if (error.code === 'internal') return new GatewayError('internal', 'Internal error of the gateway')
  if (error.code !== 'file-failed') return error
  const { reason } = error.details
  return new GatewayError(
    'file-failed',
    `The gateway cannot use one of its files: ${reason}. The log of the gateway names the file`,
    error.details,
  )
}

/** Path of the page with a section for every error code. */
export const errorDocsPath = '/docs/errors'

/** Path of the section about an error code, below the address of the gateway. */
export function toErrorDocs(code: ErrorCode): string {
  return `${errorDocsPath}#${code}`
}

/** The body of every REST error and of the CLI's `--json` failures. */
export function toErrorBody(error: GatewayError): {
  error: { code: ErrorCode; message: string; hint: string; docs: string }
} {
  const { code, message, entry } = error
  return { error: { code, message, hint: entry.hint, docs: toErrorDocs(code), ...extra(error) } }
}

function extra(error: GatewayError): { details?: Readonly<Record<string, unknown>> } {
  return Object.keys(error.details).length > 0 ? { details: error.details } : {}
}

import { createORPCClient } from '@orpc/client'
import type { ContractRouterClient } from '@orpc/contract'
import { OpenAPILink } from '@orpc/openapi-client/fetch'
import { ErrorBody } from '../../../src/contract/api/base.ts'
import { door as doorContract } from '../../../src/contract/api/people.ts'
import { api as contract } from '../../../src/contract/api.ts'

/** Typed API client; the browser sends the sign-in cookie. */
export const api: ContractRouterClient<typeof contract> = createORPCClient(
  new OpenAPILink(contract, { url: `${location.origin}/api` }),
)

/** API client for requests without a sign-in. */
export const signInApi: ContractRouterClient<typeof doorContract> = createORPCClient(
  new OpenAPILink(doorContract, { url: `${location.origin}/api` }),
)

export type Failure = {
  readonly code: string
  readonly message: string
  readonly hint: string
  /** Where the gateway explains the code; undefined without an answer of the gateway. */
  readonly docs?: string | undefined
}

/** Hints for this page; the hints of the gateway are for terminals. */
const hints: Readonly<Record<string, string>> = {
  'sign-in-failed': 'Try again. After several failed attempts you must wait longer.',
  'approval-answered': 'The current state is shown below.',
  'approval-changed': 'Check the arguments again, then decide.',
  'approval-forbidden': 'Another person must answer this approval.',
  'approval-not-found': 'It may have been removed, or you may have no access to it.',
}

/** The error of the gateway; without an answer, a connection error. */
export function toFailure(error: unknown): Failure {
  const body = ErrorBody.safeParse(bodyOf(error))
  if (body.success) {
    const { code, message, hint, docs } = body.data.error
    return { code, message: toSentence(message), hint: hints[code] ?? hint, docs }
  }
  return {
    code: 'unreachable',
    message: 'The gateway does not answer.',
    hint: 'Check that the gateway runs and that this browser can reach it.',
  }
}

function toSentence(message: string): string {
  return /[.!?]$/.test(message) ? message : `${message}.`
}

function bodyOf(error: unknown): unknown {
  if (typeof error !== 'object' || error === null || !('data' in error)) return undefined
  const { data } = error
  return typeof data === 'object' && data !== null && 'body' in data ? data.body : data
}

export function isSignedOut(error: unknown): boolean {
  return ['token-missing', 'token-invalid', 'sign-in-needed'].includes(toFailure(error).code)
}

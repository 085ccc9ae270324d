import { createORPCClient } from '@orpc/client'
import type { ContractRouterClient } from '@orpc/contract'
import { OpenAPILink } from '@orpc/openapi-client/fetch'
import { ErrorBody } from '../../../src/contract/api/base.ts'
import { door as doorContract } from '../../../src/contract/api/people.ts'
import { api as contract } from '../../../src/contract/api.ts'

/** The REST contract as functions; the cookie of the sign-in goes along by itself. */
export const api: ContractRouterClient<typeof contract> = createORPCClient(
  new OpenAPILink(contract, { url: `${location.origin}/api` }),
)

/** For whoever has not signed in yet. */
export const door: ContractRouterClient<typeof doorContract> = createORPCClient(
  new OpenAPILink(doorContract, { url: `${location.origin}/api` }),
)

export type Failure = { readonly code: string; readonly message: string; readonly hint: string }

/** The gateway's hints are for whoever has a terminal; here a page is at hand. */
const hints: Readonly<Record<string, string>> = {
  'sign-in-failed': 'Try again; after several attempts it takes longer.',
  'approval-answered': 'How it stands now is below.',
  'approval-changed': 'Look at it again, then decide.',
  'approval-forbidden': 'Somebody else has to answer it.',
  'approval-not-found': 'It may have been removed, or it is nothing that you may see.',
}

/** What went wrong, in the words of the gateway; without an answer it is the line to it. */
export function toFailure(error: unknown): Failure {
  const body = ErrorBody.safeParse(bodyOf(error))
  if (body.success) {
    const { code, message, hint } = body.data.error
    return { code, message: toSentence(message), hint: hints[code] ?? hint }
  }
  return {
    code: 'unreachable',
    message: 'The gateway does not answer.',
    hint: 'Check that it runs and that this page can reach it.',
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

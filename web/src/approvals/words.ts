import type { Call } from '../../../src/contract/call.ts'
import { describeApprover } from '../../../src/shared/approval.ts'

/** The name in `agent:reviewer`. */
export function nameOf(principal: string): string {
  return principal.slice(principal.indexOf(':') + 1)
}

/** `reviewer (agent of mara)` */
export function toWho({ principal, owner }: { principal: string; owner?: string }): string {
  const kind = principal.slice(0, principal.indexOf(':'))
  return owner === undefined ? nameOf(principal) : `${nameOf(principal)} (${kind} of ${owner})`
}

/** The approvers that a rule requires; undefined if any person may answer. */
export function toApprovers(approvers: readonly string[]): string | undefined {
  const words = approvers.filter((each) => each !== 'any').map(describeApprover)
  return words.length === 0 ? undefined : words.join(', and ')
}

const outcomes: Readonly<Record<Call['state'], string>> = {
  deciding: 'The call is about to run.',
  waiting: 'The call is about to run.',
  running: 'The call is running.',
  ok: 'The call succeeded.',
  'tool-error': 'The call ran, but the tool reported a failure.',
  failed: 'The call failed.',
  denied: 'The call did not run.',
  expired: 'The call did not run.',
  cancelled: 'The caller cancelled the call.',
  timeout: 'The call was sent, but the server did not answer in time.',
  unknown: 'The call was sent. Its result is unknown: it may have taken effect.',
}

export function toOutcome({ state, error }: Pick<Call, 'state' | 'error'>): string {
  return error ? `${outcomes[state]} ${error.message}` : outcomes[state]
}

import type { Call } from '../../../src/contract/call.ts'
import { describeApprover } from '../../../src/shared/approval.ts'

/** `agent:reviewer` as people say it. */
export function nameOf(principal: string): string {
  return principal.slice(principal.indexOf(':') + 1)
}

/** `reviewer (agent of mara)` */
export function toWho({ principal, owner }: { principal: string; owner?: string }): string {
  const kind = principal.slice(0, principal.indexOf(':'))
  return owner === undefined ? nameOf(principal) : `${nameOf(principal)} (${kind} of ${owner})`
}

/** Whom a rule wants to answer; undefined if it leaves that open. */
export function toApprovers(approvers: readonly string[]): string | undefined {
  const words = approvers.filter((each) => each !== 'any').map(describeApprover)
  return words.length === 0 ? undefined : words.join(', and ')
}

const outcomes: Readonly<Record<Call['state'], string>> = {
  deciding: 'It is about to run.',
  waiting: 'It is about to run.',
  running: 'It runs now.',
  ok: 'It ran, and succeeded.',
  'tool-error': 'It ran, and the tool reported a failure.',
  failed: 'It was tried, and failed.',
  denied: 'It did not run.',
  expired: 'It did not run.',
  cancelled: 'It was cancelled by whoever called.',
  timeout: 'It was sent, and no answer came in time.',
  unknown: 'It was sent; whether it took effect is not known.',
}

export function toOutcome({ state, error }: Pick<Call, 'state' | 'error'>): string {
  return error ? `${outcomes[state]} ${error.message}` : outcomes[state]
}

import { useQuery } from '@tanstack/react-query'
import type { Approval } from '../../../src/contract/approval.ts'
import { toClock } from '../../../src/shared/time.ts'
import { Visible } from '../parts/Visible.tsx'
import { callQuery } from './queries.ts'
import { nameOf, toOutcome } from './words.ts'

/** The answers so far. A rule may require two. */
export function Answers({ approval }: { approval: Approval }) {
  const now = new Date()
  if (approval.answers.length === 0) return null
  return (
    <ul className="mb-3 rounded-lg border border-line bg-panel p-3">
      {approval.answers.map((answer) => (
        <li key={answer.by} className="break-words">
          {answer.verdict === 'approve' ? 'Approved' : 'Denied'} by {nameOf(answer.by)} at{' '}
          <time dateTime={answer.at}>{toClock(new Date(answer.at), now)}</time>
          {answer.reason && (
            <>
              : <Visible text={answer.reason} />
            </>
          )}
        </li>
      ))}
      {approval.grant && <li className="text-soft">A grant allows further calls.</li>}
      {approval.state === 'waiting' && <li className="text-soft">A second person must approve this.</li>}
    </ul>
  )
}

/** How an approval ended, and the result of its call. */
export function Ended({ approval }: { approval: Approval }) {
  const { state } = approval
  const { data: call } = useQuery(callQuery(approval.call, state === 'used'))
  const words = {
    waiting: '',
    approved: 'The call has not run yet. It runs when the agent repeats it.',
    used: call ? toOutcome(call) : 'The call ran.',
    denied: 'The call was not sent.',
    lapsed: 'Approved, but the agent did not repeat the call in time. The call was not sent.',
    expired: 'Nobody answered in time. The call was not sent.',
    withdrawn: `The call can no longer run and was not sent. ${approval.withdrawnBecause ?? ''}`,
  }[state]
  return (
    <p className="text-soft">
      <Visible text={words} />
    </p>
  )
}

import { useQuery } from '@tanstack/react-query'
import type { Approval } from '../../../src/contract/approval.ts'
import { toClock } from '../../../src/shared/time.ts'
import { Visible } from '../parts/Visible.tsx'
import { callQuery } from './queries.ts'
import { nameOf, toOutcome } from './words.ts'

/** What people have said so far. A rule may want two of them. */
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
      {approval.grant && <li className="text-soft">With a grant for further calls.</li>}
      {approval.state === 'waiting' && <li className="text-soft">One more person has to agree.</li>}
    </ul>
  )
}

/** How a question ended that waits no longer, and what became of its call. */
export function Ended({ approval }: { approval: Approval }) {
  const { state } = approval
  const { data: call } = useQuery(callQuery(approval.call, state === 'used'))
  const words = {
    waiting: '',
    approved: 'Nothing has run yet: it runs when the agent comes back for it.',
    used: call ? toOutcome(call) : 'It ran.',
    denied: 'Nothing was sent.',
    lapsed: 'It was approved, and the agent did not come back for it in time. Nothing was sent.',
    expired: 'Nobody answered in time. Nothing was sent.',
    withdrawn: `What was asked for cannot run any more. Nothing was sent. ${approval.withdrawnBecause ?? ''}`,
  }[state]
  return (
    <p className="text-soft">
      <Visible text={words} />
    </p>
  )
}

import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { ArrowLeft } from 'lucide-react'
import { type ReactNode, useEffect, useRef } from 'react'
import type { ApprovalDetail } from '../../../src/contract/approval.ts'
import { api, toFailure } from '../lib/api.ts'
import { toClock, toCountdown, toSpan } from '../lib/time.ts'
import { Button } from '../parts/Button.tsx'
import { RiskChip, StateChip } from '../parts/Chip.tsx'
import { useNow } from '../parts/useNow.ts'
import { Visible } from '../parts/Visible.tsx'
import { nameOf } from './ApprovalList.tsx'
import { Arguments } from './Arguments.tsx'
import { DenyForm } from './DenyForm.tsx'
import type { Decision, Decisions, Pending } from './decisions.ts'
import { GrantForm } from './GrantForm.tsx'

export type Panel = 'grant' | 'deny' | undefined

type ApprovalViewProps = { id: string; panel: Panel; onPanel(panel: Panel): void; decisions: Decisions }

/** One question in full: what, who, with which arguments, why it was asked, and the three things one can do. */
export function ApprovalView({ id, panel, onPanel, decisions }: ApprovalViewProps) {
  const { data, error, refetch } = useQuery({
    queryKey: ['approvals', 'one', id],
    queryFn: () => api.approvals.get({ params: { id } }),
  })
  const back = (
    <Link to="/approvals" className="mb-3 inline-flex items-center gap-1 text-accent md:hidden">
      <ArrowLeft size={16} aria-hidden="true" /> All questions
    </Link>
  )
  if (error) {
    const { message, hint } = toFailure(error)
    return (
      <div role="alert" className="p-4 md:p-6">
        {back}
        <p className="font-medium">{message}</p>
        <p className="mt-1 mb-3 text-soft">{hint}</p>
        <Button onClick={() => void refetch()}>Try again</Button>
      </div>
    )
  }
  if (!data) return <div className="p-6 text-soft">Loading</div>
  const pending = decisions.pending(id)
  const failure = decisions.failure(id)
  const decide = (decision: Omit<Decision, 'hash'>) => {
    onPanel(undefined)
    decisions.decide(id, { ...decision, hash: data.hash })
  }
  return (
    <article className="p-4 md:p-6" aria-labelledby="question-title">
      {back}
      <Head approval={data} />
      {data.risk === 'danger' && (
        <p className="mb-4 text-danger">
          This tool is marked as danger: it may change or destroy something that cannot be brought back.
        </p>
      )}
      <Arguments value={data.arguments} hash={data.hash} />
      <Facts approval={data} />
      {failure && (
        <p role="alert" className="mb-4 rounded-md bg-danger-ground px-3 py-2 text-danger">
          Your answer was not taken: {failure.message} {failure.hint}
        </p>
      )}
      {pending && <Undo pending={pending} onUndo={() => decisions.undo(id)} />}
      {!pending && data.state === 'waiting' && (
        <Actions panel={panel} onPanel={onPanel} approval={data} onDecide={decide} />
      )}
      {data.state !== 'waiting' && <Answered approval={data} />}
    </article>
  )
}

function Head({ approval }: { approval: ApprovalDetail }) {
  const now = useNow()
  const heading = useRef<HTMLHeadingElement>(null)
  // Whoever comes by keyboard or screen reader lands on what is asked.
  useEffect(() => heading.current?.focus({ preventScroll: true }), [])
  const left = Date.parse(approval.expiresAt) - now
  return (
    <header className="mb-4">
      <h1 ref={heading} tabIndex={-1} id="question-title" className="break-words font-semibold text-20 outline-none">
        <Visible text={approval.title} />
      </h1>
      <p className="mt-1 flex flex-wrap items-center gap-x-2 gap-y-1 text-13 text-soft">
        <span>
          {nameOf(approval.principal)}
          {approval.owner && ` (agent of ${approval.owner})`}
        </span>
        <span aria-hidden="true">·</span>
        <code className="font-mono text-12">
          <Visible text={approval.tool} />
        </code>
        <RiskChip risk={approval.risk} />
        <span title={approval.askedAt}>asked {toSpan(now - Date.parse(approval.askedAt))} ago</span>
        {approval.state === 'waiting' ? (
          <span title={approval.expiresAt} className={left < 60_000 ? 'font-medium text-danger' : ''}>
            {left > 0 ? `${toCountdown(left)} left` : 'time is up'}
          </span>
        ) : (
          <StateChip state={approval.state} />
        )}
      </p>
    </header>
  )
}

function Facts({ approval }: { approval: ApprovalDetail }) {
  const { before, around } = approval
  return (
    <dl className="my-4 grid grid-cols-[minmax(5rem,auto)_1fr] gap-x-4 gap-y-1 text-13">
      <Fact name="Why asked">
        <Visible text={approval.reason} />
      </Fact>
      <Fact name="Before">
        {before.asked === 0
          ? 'Nobody was asked this for this agent before.'
          : `approved ${before.approved} of ${before.asked} times for ${nameOf(approval.principal)}`}
      </Fact>
      {around.length > 0 && (
        <Fact name="Around it">
          <ul>
            {around.map((call) => (
              <li key={call.id}>
                <code className="font-mono text-12">
                  <Visible text={call.tool} />
                </code>{' '}
                <span className="text-soft">→ {call.state}</span>
              </li>
            ))}
          </ul>
        </Fact>
      )}
    </dl>
  )
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <>
      <dt className="text-soft">{name}</dt>
      <dd className="min-w-0 break-words">{children}</dd>
    </>
  )
}

type ActionsProps = {
  approval: ApprovalDetail
  panel: Panel
  onPanel(panel: Panel): void
  onDecide(decision: Omit<Decision, 'hash'>): void
}

function Actions({ approval, panel, onPanel, onDecide }: ActionsProps) {
  if (panel === 'grant') {
    return (
      <GrantForm
        approval={approval}
        onCancel={() => onPanel(undefined)}
        onGrant={(grant) => onDecide({ verdict: 'approve', grant })}
      />
    )
  }
  if (panel === 'deny') {
    return <DenyForm onCancel={() => onPanel(undefined)} onDeny={(reason) => onDecide({ verdict: 'deny', reason })} />
  }
  return (
    <div className="flex flex-col gap-2 max-md:sticky max-md:bottom-16 max-md:bg-ground max-md:py-2 md:flex-row">
      <Button tone="main" hint="A" onClick={() => onDecide({ verdict: 'approve' })}>
        Approve once
      </Button>
      <Button hint="G" onClick={() => onPanel('grant')}>
        Approve and allow…
      </Button>
      <Button tone="danger" hint="D" onClick={() => onPanel('deny')}>
        Deny…
      </Button>
    </div>
  )
}

function Undo({ pending, onUndo }: { pending: Pending; onUndo(): void }) {
  const now = useNow()
  const verb = pending.verdict === 'approve' ? 'Approved' : 'Denied'
  return (
    <div className="flex items-center gap-3 rounded-lg border border-line bg-panel p-3">
      <output>
        {verb}. It is sent in {Math.max(1, Math.ceil((pending.sendAt - now) / 1000))} s.
      </output>
      <Button hint="U" onClick={onUndo} className="ml-auto">
        Undo
      </Button>
    </div>
  )
}

function Answered({ approval }: { approval: ApprovalDetail }) {
  const now = new Date()
  if (approval.answers.length === 0) return null
  return (
    <ul className="rounded-lg border border-line bg-panel p-3">
      {approval.answers.map((answer) => (
        <li key={answer.by}>
          {answer.verdict === 'approve' ? 'Approved' : 'Denied'} by {nameOf(answer.by)} at{' '}
          {toClock(new Date(answer.at), now)}
          {answer.reason && (
            <>
              : <Visible text={answer.reason} />
            </>
          )}
          {approval.grant && answer.verdict === 'approve' && ', with a grant'}
        </li>
      ))}
    </ul>
  )
}

import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { ArrowLeft } from 'lucide-react'
import { type ReactNode, useCallback, useEffect, useMemo, useRef, useState } from 'react'
import type { ApprovalDetail } from '../../../src/contract/approval.ts'
import { describeSuspect, describeWaiting } from '../../../src/shared/approval.ts'
import { toCountdown, toSpan } from '../../../src/shared/time.ts'
import { toFailure } from '../lib/api.ts'
import { Button } from '../parts/Button.tsx'
import { RiskChip, StateChip } from '../parts/Chip.tsx'
import { DocsLink } from '../parts/DocsLink.tsx'
import { Folded } from '../parts/Folded.tsx'
import { Foot, IntoView } from '../parts/Foot.tsx'
import { useNow } from '../parts/useNow.ts'
import { Visible } from '../parts/Visible.tsx'
import { Answers, Ended } from './Answers.tsx'
import { DefinitionChange } from './DefinitionChange.tsx'
import { DenyForm } from './DenyForm.tsx'
import type { Decision, Decisions, Pending } from './decisions.ts'
import { GrantForm } from './GrantForm.tsx'
import { useKeys } from './keys.tsx'
import { approvalQuery } from './queries.ts'
import { isLong, Sent } from './Sent.tsx'
import { nameOf, toApprovers, toWho } from './words.ts'

type ApprovalViewProps = { id: string; decisions: Decisions }

/** One approval, or its loading and error state. */
export function ApprovalView({ id, decisions }: ApprovalViewProps) {
  const { data, error, refetch } = useQuery(approvalQuery(id))
  const failure = !data && error ? toFailure(error) : undefined
  return (
    // Without this, scroll anchoring would move a text out of view when the text is expanded.
    <div className="max-w-3xl p-4 [overflow-anchor:none] md:p-6">
      <Link to="/approvals" className="mb-3 inline-flex items-center gap-1 text-accent md:hidden">
        <ArrowLeft size={16} aria-hidden="true" /> All approvals
      </Link>
      {failure && (
        <div role="alert">
          <p className="font-medium">{failure.message}</p>
          <p className="mt-1 mb-3 text-soft">
            {failure.hint} <DocsLink failure={failure} />
          </p>
          <Button onClick={() => void refetch()}>Try again</Button>
        </div>
      )}
      {!data && !failure && <p className="late text-soft">Loading</p>}
      {data && <Approval approval={data} decisions={decisions} />}
    </div>
  )
}

type Panel = 'grant' | 'deny' | undefined

function Approval({ approval, decisions }: { approval: ApprovalDetail; decisions: Decisions }) {
  const { id, hash, state, notAllowed } = approval
  const [panel, setPanel] = useState<Panel>()
  const [opened, setOpened] = useState(false)
  const [seen, setSeen] = useState(false)
  const long = useMemo(() => isLong(approval), [approval])
  const whole = opened || !long
  const missing = toMissing(whole, seen)
  const ready = missing === undefined
  const onSeen = useCallback(() => setSeen(true), [])
  const pending = decisions.pending(id)
  const failure = decisions.failure(id)
  const answerable = state === 'waiting' && notAllowed === undefined && !pending
  const decide = (decision: Omit<Decision, 'hash'>) => {
    setPanel(undefined)
    decisions.decide(id, { ...decision, hash })
  }
  useKeys({
    o: () => setOpened(true),
    ...(answerable && ready && { a: (deliberate) => deliberate && decide({ verdict: 'approve' }) }),
    ...(answerable && ready && mayGrant(approval) && { g: () => setPanel('grant') }),
    ...(answerable && { d: () => setPanel('deny') }),
  })
  return (
    <article aria-labelledby="approval-title">
      <Head approval={approval} />
      {approval.risk === 'danger' && (
        <p className="mb-4 text-danger">This tool has the risk danger: its changes may not be reversible.</p>
      )}
      <DefinitionChange drift={approval.drift} />
      <Sent
        approval={approval}
        hash={hash}
        whole={whole}
        opened={opened && long}
        onWhole={() => setOpened(true)}
        onSeen={onSeen}
      />
      <Facts approval={approval} />
      {failure && (
        <p role="alert" className="mb-4 rounded-md bg-danger-ground px-3 py-2 text-danger">
          Your answer was not accepted. {failure.message} {failure.hint} <DocsLink failure={failure} />
        </p>
      )}
      <Answers approval={approval} />
      {state === 'waiting' && pending && <Undo pending={pending} onUndo={() => decisions.undo(id)} />}
      {state === 'waiting' && notAllowed !== undefined && <NotAllowed why={notAllowed} />}
      {answerable && (
        <Actions panel={panel} onPanel={setPanel} approval={approval} missing={missing} onDecide={decide} />
      )}
      {state !== 'waiting' && <Ended approval={approval} />}
    </article>
  )
}

/** What the person must do before approving: all arguments must have been shown. */
function toMissing(whole: boolean, seen: boolean): string | undefined {
  if (!whole) return 'Open all of the arguments before you approve them.'
  return seen ? undefined : 'Scroll to the end of the arguments before you approve them.'
}

function Head({ approval }: { approval: ApprovalDetail }) {
  const now = useNow()
  const heading = useRef<HTMLHeadingElement>(null)
  // Keyboard and screen reader users start at the title of the approval.
  useEffect(() => {
    heading.current?.focus({ preventScroll: true })
  }, [])
  const left = Date.parse(approval.expiresAt) - now
  return (
    <header className="mb-4">
      <h1 ref={heading} tabIndex={-1} id="approval-title" className="break-words font-semibold text-20 outline-none">
        <Visible text={approval.title} />
      </h1>
      <p className="mt-1 flex flex-wrap items-center gap-x-2 gap-y-1 text-13 text-soft">
        <span className="break-words">
          <Visible text={toWho(approval)} />
        </span>
        <code className="min-w-0 break-all font-mono text-12">
          <Visible text={approval.tool} />
        </code>
        <RiskChip risk={approval.risk} />
        <span title={approval.requestedAt}>requested {toSpan(now - Date.parse(approval.requestedAt))} ago</span>
        {approval.state === 'waiting' ? (
          <span title={approval.expiresAt} className={left < 60_000 ? 'font-medium text-danger' : ''}>
            {left > 0 ? `${toCountdown(left)} left` : 'expired'}
          </span>
        ) : (
          <StateChip state={approval.state} />
        )}
      </p>
    </header>
  )
}

function Facts({ approval }: { approval: ApprovalDetail }) {
  const { earlier, recentCalls, description, server, serverTitle } = approval
  const approvers = toApprovers(approval.approvers)
  return (
    <dl className="my-4 grid grid-cols-[minmax(5rem,auto)_1fr] gap-x-4 gap-y-1.5 text-13">
      <Fact name="Server">
        <code className="break-all font-mono text-12">
          <Visible text={server} />
        </code>
      </Fact>
      {serverTitle !== undefined && (
        <Fact name="Server title">
          <Visible text={serverTitle} />
        </Fact>
      )}
      {description !== undefined && (
        <Fact name="Description">
          <Folded text={description} />
        </Fact>
      )}
      <Fact name="Reason">
        <Visible text={approval.reason} />
      </Fact>
      {approvers !== undefined && <Fact name="Who can answer">{approvers}</Fact>}
      <Fact name="Earlier">
        {earlier.requested === 0
          ? 'no earlier approval for this tool'
          : `approved ${earlier.approved} of ${earlier.requested} times for ${nameOf(approval.principal)}`}
      </Fact>
      {recentCalls.length > 0 && (
        <Fact name="Recent calls">
          <ul>
            {recentCalls.map((call) => (
              <li key={call.id}>
                <code className="break-all font-mono text-12">
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
  /** What the person must do before approving; undefined if nothing. */
  missing: string | undefined
  onPanel(panel: Panel): void
  onDecide(decision: Omit<Decision, 'hash'>): void
}

function Actions({ approval, panel, missing, onPanel, onDecide }: ActionsProps) {
  if (panel === 'grant') {
    return (
      <IntoView>
        <GrantForm
          approval={approval}
          onCancel={() => onPanel(undefined)}
          onGrant={(grant) => onDecide({ verdict: 'approve', grant })}
        />
      </IntoView>
    )
  }
  if (panel === 'deny') {
    return (
      <IntoView>
        <DenyForm onCancel={() => onPanel(undefined)} onDeny={(reason) => onDecide({ verdict: 'deny', reason })} />
      </IntoView>
    )
  }
  return (
    <Foot>
      <Suspect approval={approval} />
      <p className="mb-2 text-13 text-soft">{describeWaiting(approval.waiting)}</p>
      {missing !== undefined && (
        <p id="open-first" className="mb-2 font-medium text-13 text-write">
          {missing}
        </p>
      )}
      <div className="flex flex-wrap gap-2 max-md:grid max-md:grid-cols-2">
        <Button
          tone="main"
          hint="A"
          className="max-md:col-span-2"
          disabled={missing !== undefined}
          aria-describedby={missing === undefined ? undefined : 'open-first'}
          onClick={() => onDecide({ verdict: 'approve' })}
        >
          Approve once
        </Button>
        {mayGrant(approval) && (
          <Button
            hint="G"
            disabled={missing !== undefined}
            aria-describedby={missing === undefined ? undefined : 'open-first'}
            onClick={() => onPanel('grant')}
          >
            Approve and allow…
          </Button>
        )}
        <Button
          tone="danger"
          hint="D"
          className={mayGrant(approval) ? '' : 'max-md:col-span-2'}
          onClick={() => onPanel('deny')}
        >
          Deny…
        </Button>
      </div>
    </Foot>
  )
}

/** Next to the buttons, because the marked characters may be anywhere in a long text. */
function Suspect({ approval }: { approval: ApprovalDetail }) {
  const words = useMemo(() => describeSuspect(approval), [approval])
  if (words === undefined) return null
  return (
    <p role="alert" className="mb-2 rounded-md border border-danger bg-danger-ground px-3 py-2 text-13 text-danger">
      Look closely: {words}. They are marked with their code points.
    </p>
  )
}

/** No grant if two people must approve each call: one person's grant would skip the second person. */
function mayGrant({ approvers }: ApprovalDetail): boolean {
  return !approvers.includes('two')
}

function NotAllowed({ why }: { why: string }) {
  return <p className="rounded-lg border border-line bg-panel p-3 text-soft">You cannot answer this: {why}.</p>
}

function Undo({ pending, onUndo }: { pending: Pending; onUndo(): void }) {
  const now = useNow()
  const left = Math.ceil((pending.sendAt - now) / 1000)
  const verb = { approve: pending.grant ? 'Approved, with a grant' : 'Approved', deny: 'Denied' }[pending.verdict]
  return (
    <Foot>
      <div className="flex items-center gap-3 rounded-lg border border-line bg-panel p-3">
        <output>
          {verb}. {left > 0 ? `The answer is sent in ${left} s.` : 'The answer is being sent.'}
        </output>
        {left > 0 && (
          <Button hint="U" onClick={onUndo} className="ml-auto">
            Undo
          </Button>
        )}
      </div>
    </Foot>
  )
}

import { type FocusEvent, type PointerEvent, useEffect, useState } from 'react'
import type { Approval } from '../../../src/contract/approval.ts'
import { toSpan } from '../../../src/shared/time.ts'
import type { Failure } from '../lib/api.ts'
import { Button } from '../parts/Button.tsx'
import { RiskChip, StateChip } from '../parts/Chip.tsx'
import { DocsLink } from '../parts/DocsLink.tsx'
import { useNow } from '../parts/useNow.ts'
import { Visible } from '../parts/Visible.tsx'
import type { Decisions } from './decisions.ts'
import { nameOf } from './words.ts'

type ApprovalListProps = {
  open: readonly Approval[]
  answered: readonly Approval[]
  selected: string | undefined
  loading: boolean
  failure: Failure | undefined
  decisions: Decisions
  onSelect(id: string): void
  onRetry(): void
}

export function ApprovalList(props: ApprovalListProps) {
  const { open, answered, selected, decisions, onSelect } = props
  const now = useNow()
  const { shown, fresh, catchUp, hold } = useHeldRows(open)
  if (props.failure) return <ListFailure failure={props.failure} onRetry={props.onRetry} />
  return (
    <div {...hold}>
      <h2 className="sticky top-0 z-10 border-line border-b bg-ground px-4 py-2 font-semibold text-13">
        Waiting <span className="text-soft">{open.length}</span>
      </h2>
      <output aria-live="polite" className="block">
        {fresh > 0 && (
          <span className="block p-2">
            <Button onClick={catchUp} className="w-full">
              {fresh} new
            </Button>
          </span>
        )}
      </output>
      {props.loading && <Skeleton />}
      {!props.loading && shown.length === 0 && <p className="px-4 py-6 text-soft">No approvals are waiting.</p>}
      <ul>
        {shown.map((approval) => {
          const isPending = decisions.pending(approval.id) !== undefined
          return (
            <li key={approval.id} className="relative">
              <Row
                approval={approval}
                now={now}
                selected={approval.id === selected}
                onSelect={onSelect}
                className={isPending ? 'pr-20' : 'pr-4'}
              />
              {isPending && (
                <Button onClick={() => decisions.undo(approval.id)} className="absolute right-2 bottom-2 h-8!">
                  Undo
                </Button>
              )}
            </li>
          )
        })}
      </ul>
      {answered.length > 0 && (
        <>
          <h2 className="sticky top-0 z-10 border-line border-b bg-ground px-4 py-2 font-semibold text-13">Answered</h2>
          <ul>
            {answered.map((approval) => (
              <li key={approval.id}>
                <Row
                  approval={approval}
                  now={now}
                  selected={approval.id === selected}
                  onSelect={onSelect}
                  className="pr-4"
                />
              </li>
            ))}
          </ul>
        </>
      )}
    </div>
  )
}

type RowProps = {
  approval: Approval
  now: number
  selected: boolean
  className: string
  onSelect(id: string): void
}

function Row({ approval, now, selected, className, onSelect }: RowProps) {
  return (
    <button
      type="button"
      aria-current={selected ? 'true' : undefined}
      onClick={() => onSelect(approval.id)}
      className={`block w-full rounded-none border-line border-b py-2 pl-4 text-left hover:bg-sunken focus-visible:-outline-offset-2 ${className} ${selected ? 'bg-accent-ground hover:bg-accent-ground' : ''}`}
    >
      <span className="line-clamp-2 break-words font-medium">
        <Visible text={approval.title} />
      </span>
      <span className="mt-1 flex flex-wrap items-center gap-x-2 gap-y-1 text-12 text-soft">
        <span className="max-w-40 truncate">{nameOf(approval.principal)}</span>
        <span title={approval.requestedAt}>{toSpan(now - Date.parse(approval.requestedAt))}</span>
        <RiskChip risk={approval.risk} />
        {approval.state !== 'waiting' && <StateChip state={approval.state} />}
      </span>
    </button>
  )
}

/** Holds new rows back while the pointer or the focus is in the list, so that rows do not move before a click. */
function useHeldRows(rows: readonly Approval[]) {
  const [pointed, setPointed] = useState(false)
  const [focused, setFocused] = useState(false)
  const [known, setKnown] = useState<ReadonlySet<string>>()
  const held = pointed || focused
  useEffect(() => {
    if (!held || known === undefined) setKnown(new Set(rows.map(({ id }) => id)))
  }, [held, known, rows])
  const shown = held && known ? rows.filter(({ id }) => known.has(id)) : rows
  return {
    shown,
    fresh: rows.length - shown.length,
    catchUp: () => setKnown(new Set(rows.map(({ id }) => id))),
    hold: {
      onPointerEnter: (event: PointerEvent) => event.pointerType === 'mouse' && setPointed(true),
      onPointerLeave: () => setPointed(false),
      onFocus: () => setFocused(true),
      onBlur: (event: FocusEvent) => !event.currentTarget.contains(event.relatedTarget) && setFocused(false),
    },
  }
}

function Skeleton() {
  return (
    <div aria-hidden="true" className="late">
      {[0, 1, 2].map((row) => (
        <div key={row} className="border-line border-b px-4 py-2">
          <div className="mb-2 h-4 w-4/5 rounded bg-sunken" />
          <div className="h-3 w-1/2 rounded bg-sunken" />
        </div>
      ))}
    </div>
  )
}

function ListFailure({ failure, onRetry }: { failure: Failure; onRetry(): void }) {
  return (
    <div role="alert" className="p-4">
      <p className="font-medium">The approvals could not be loaded.</p>
      <p className="mt-1 mb-3 text-soft">
        {failure.message} {failure.hint} <DocsLink failure={failure} />
      </p>
      <Button onClick={onRetry}>Try again</Button>
    </div>
  )
}

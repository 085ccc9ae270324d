import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate, useParams } from '@tanstack/react-router'
import { Inbox } from 'lucide-react'
import { useCallback, useState } from 'react'
import type { Approval } from '../../../src/contract/approval.ts'
import { toFailure } from '../lib/api.ts'
import { Button } from '../parts/Button.tsx'
import { ApprovalList } from './ApprovalList.tsx'
import { ApprovalView } from './ApprovalView.tsx'
import { useDecisions } from './decisions.ts'
import { KeysDialog, useKeys } from './keys.tsx'
import { approvalsKey, recentQuery, waitingQuery } from './queries.ts'

/** The list on the left and one approval on the right; on a phone only one of them. */
export function ApprovalsPage() {
  const { id: selected } = useParams({ strict: false })
  const navigate = useNavigate()
  const queries = useQueryClient()
  const [help, setHelp] = useState(false)
  const waiting = useQuery(waitingQuery)
  const recent = useQuery(recentQuery)
  const refresh = useCallback(() => void queries.invalidateQueries({ queryKey: approvalsKey }), [queries])
  const decisions = useDecisions(refresh)
  const open = waiting.data?.items ?? []
  const answered = (recent.data?.items ?? []).filter(({ state }) => state !== 'waiting')
  const select = useCallback((id: string) => void navigate({ to: '/approvals/$id', params: { id } }), [navigate])
  const move = (step: 1 | -1) => {
    const at = open.findIndex(({ id }) => id === selected)
    const next = open[at === -1 ? 0 : at + step]
    if (next) select(next.id)
  }
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    u: () => decisions.undo(decisions.last() ?? ''),
    '?': () => setHelp(true),
  })

  return (
    <div className="flex w-full md:h-full">
      {selected === undefined && <h1 className="sr-only">Approvals</h1>}
      <section
        aria-label="Approvals"
        className={`w-full border-line md:w-80 md:shrink-0 md:overflow-y-auto md:border-r ${selected ? 'max-md:hidden' : ''}`}
      >
        <ApprovalList
          open={open}
          answered={answered}
          selected={selected}
          loading={waiting.isPending}
          failure={waiting.error && !waiting.data ? toFailure(waiting.error) : undefined}
          decisions={decisions}
          onSelect={select}
          onRetry={refresh}
        />
      </section>
      <section aria-label="Approval" className={`min-w-0 flex-1 md:overflow-y-auto ${selected ? '' : 'max-md:hidden'}`}>
        {selected === undefined ? (
          <Nothing open={open} onOpen={select} />
        ) : (
          <ApprovalView key={selected} id={selected} decisions={decisions} />
        )}
      </section>
      <KeysDialog open={help} onClose={() => setHelp(false)} />
    </div>
  )
}

function Nothing({ open, onOpen }: { open: readonly Approval[]; onOpen(id: string): void }) {
  const [first] = open
  return (
    <div className="grid h-full place-items-center p-8 text-center text-soft">
      <div>
        <Inbox size={28} className="mx-auto mb-3" aria-hidden="true" />
        {first ? (
          <>
            <p className="mb-4">
              {open.length === 1 ? '1 approval is waiting.' : `${open.length} approvals are waiting.`}
            </p>
            <Button onClick={() => onOpen(first.id)}>{open.length === 1 ? 'Open it' : 'Open the newest'}</Button>
          </>
        ) : (
          <p className="max-w-xs">
            No approvals are waiting. When an agent makes a call that requires approval, it appears here.
          </p>
        )}
      </div>
    </div>
  )
}

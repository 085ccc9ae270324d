import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { Inbox } from 'lucide-react'
import { useCallback, useState } from 'react'
import type { Approval } from '../../../src/contract/approval.ts'
import { api, toFailure } from '../lib/api.ts'
import { Button } from '../parts/Button.tsx'
import { ApprovalList } from './ApprovalList.tsx'
import { ApprovalView, type Panel } from './ApprovalView.tsx'
import { useDecisions } from './decisions.ts'
import { KeysDialog, useKeys } from './keys.tsx'

/** What waits on the left, one question on the right; on a phone one or the other. */
export function ApprovalsPage({ selected }: { selected?: string }) {
  const navigate = useNavigate()
  const queries = useQueryClient()
  const [panel, setPanel] = useState<Panel>()
  const [help, setHelp] = useState(false)
  const waiting = useQuery({
    queryKey: ['approvals', 'waiting'],
    queryFn: () => api.approvals.list({ state: 'waiting', limit: 200 }),
  })
  const recent = useQuery({
    queryKey: ['approvals', 'recent'],
    queryFn: () => api.approvals.list({ limit: 50 }),
  })
  const refresh = useCallback(() => void queries.invalidateQueries({ queryKey: ['approvals'] }), [queries])
  const decisions = useDecisions(refresh)
  const open = waiting.data?.items ?? []
  const answered = (recent.data?.items ?? []).filter(({ state }) => state !== 'waiting')
  const current = selected ?? undefined

  const select = useCallback(
    (id: string) => {
      setPanel(undefined)
      void navigate({ to: '/approvals/$id', params: { id } })
    },
    [navigate],
  )
  const shown = open.find(({ id }) => id === current)
  useKeys({
    move: (step) => {
      const at = open.findIndex(({ id }) => id === current)
      const next = open[at === -1 ? 0 : at + step]
      if (next) select(next.id)
    },
    approve: () => shown && decisions.decide(shown.id, { verdict: 'approve', hash: shown.hash }),
    grant: () => shown && setPanel('grant'),
    deny: () => shown && setPanel('deny'),
    undo: () => decisions.last !== undefined && decisions.undo(decisions.last),
    help: () => setHelp(true),
  })

  return (
    <div className="mx-auto flex w-full max-w-[1200px] md:h-[calc(100dvh-48px)]">
      <section
        aria-label="Questions"
        className={`w-full border-line md:w-80 md:shrink-0 md:overflow-y-auto md:border-r ${current ? 'max-md:hidden' : ''}`}
      >
        <ApprovalList
          open={open}
          answered={answered}
          selected={current}
          loading={waiting.isPending}
          failure={waiting.error ? toFailure(waiting.error) : undefined}
          decisions={decisions}
          onSelect={select}
          onRetry={refresh}
        />
      </section>
      <section
        aria-label="The question"
        className={`min-w-0 flex-1 md:overflow-y-auto ${current ? '' : 'max-md:hidden'}`}
      >
        {current === undefined ? (
          <Nothing open={open} onOpen={select} />
        ) : (
          <ApprovalView key={current} id={current} panel={panel} onPanel={setPanel} decisions={decisions} />
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
            <p className="mb-4">{open.length === 1 ? 'One question waits.' : `${open.length} questions wait.`}</p>
            <Button onClick={() => onOpen(first.id)}>Open the newest</Button>
          </>
        ) : (
          <p className="max-w-xs">
            Nothing needs you. When an agent wants something that a rule says to ask about, it appears here by itself.
          </p>
        )}
      </div>
    </div>
  )
}

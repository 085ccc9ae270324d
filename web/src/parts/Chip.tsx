import { CircleAlert, CircleCheck, CircleHelp, Clock, Eye, OctagonAlert, Pencil, Undo2 } from 'lucide-react'
import type { ApprovalState } from '../../../src/contract/approval.ts'
import type { Risk } from '../../../src/contract/risk.ts'

const shape = 'inline-flex items-center gap-1 rounded px-1.5 text-12 font-medium'

const risks = {
  read: { icon: Eye, tone: 'bg-read-ground text-read' },
  write: { icon: Pencil, tone: 'bg-write-ground text-write' },
  danger: { icon: OctagonAlert, tone: 'bg-danger-ground text-danger' },
} satisfies Record<Risk, object>

/** Shows the risk as a word, not only as a colour. */
export function RiskChip({ risk }: { risk: Risk }) {
  const { icon: Icon, tone } = risks[risk]
  return (
    <span className={`${shape} ${tone}`}>
      <Icon size={12} aria-hidden="true" /> {risk}
    </span>
  )
}

const states = {
  waiting: { icon: Clock, tone: 'bg-write-ground text-write', word: 'waiting' },
  approved: { icon: CircleCheck, tone: 'bg-good-ground text-good', word: 'approved, not run yet' },
  used: { icon: CircleCheck, tone: 'bg-good-ground text-good', word: 'approved' },
  lapsed: { icon: CircleHelp, tone: 'bg-unknown-ground text-unknown', word: 'approved, not used in time' },
  denied: { icon: CircleAlert, tone: 'bg-danger-ground text-danger', word: 'denied' },
  expired: { icon: CircleHelp, tone: 'bg-unknown-ground text-unknown', word: 'expired' },
  withdrawn: { icon: Undo2, tone: 'bg-unknown-ground text-unknown', word: 'withdrawn' },
} satisfies Record<ApprovalState, object>

export function StateChip({ state }: { state: ApprovalState }) {
  const { icon: Icon, tone, word } = states[state]
  return (
    <span className={`${shape} ${tone}`}>
      <Icon size={12} aria-hidden="true" /> {word}
    </span>
  )
}

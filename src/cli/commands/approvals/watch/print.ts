import type { Approval } from '../../../../contract/approval.ts'
import { toVisible } from '../../../../shared/visible.ts'
import { exit } from '../../../terminal/exit.ts'
import { leaveOnSignal } from '../../../terminal/leave.ts'
import type { Terminal } from '../../../terminal/terminal.ts'
import { stateWords } from '../approval-view.ts'
import { type Following, follow } from './follow.ts'
import type { EndedCall, Happening } from './state.ts'

/** Without a terminal: one line for each approval, each answer, and each end of a call that required approval. */
export async function printLines(terminal: Terminal, following: Omit<Following, 'signal' | 'on'>): Promise<number> {
  const leaving = new AbortController()
  const stayed = leaveOnSignal(leaving)
  /** Printed calls that have not ended. The list is read again after a lost connection and contains them again. */
  const printed = new Set<string>()
  process.stdout.on('error', () => leaving.abort()) // the reader closed the pipe
  try {
    await follow({ ...following, signal: leaving.signal, on })
  } finally {
    leaving.abort()
    stayed()
  }
  return exit.done

  function on(happening: Happening): void {
    if (happening.kind === 'linked')
      terminal.talk(happening.linked ? 'Listening.' : 'Lost the connection to the gateway; reconnecting.')
    if (happening.kind === 'listed') for (const approval of happening.items) tellAsked(approval)
    if (happening.kind === 'approval') {
      if (happening.name === 'approval-requested') tellAsked(happening.approval)
      else
        terminal.line(
          { event: happening.name, approval: happening.approval },
          toVisible(toAnsweredLine(happening.approval)),
        )
    }
    if (happening.kind === 'call-ended' && printed.delete(happening.call.id))
      terminal.line({ event: happening.kind, call: happening.call }, toVisible(toEndedLine(happening.call)))
  }

  function tellAsked(approval: Approval): void {
    if (printed.has(approval.call)) return
    printed.add(approval.call)
    terminal.line({ event: 'approval-requested', approval }, toVisible(toAskedLine(approval)))
  }
}

function toAskedLine({ id, requestedAt, risk, principal, title, tool, arguments: given }: Approval): string {
  return `${requestedAt} requested ${id} ${risk} ${principal} ${tool}: ${title} ${JSON.stringify(given)}`
}

function toAnsweredLine({ id, state, answers, endedAt, expiresAt }: Approval): string {
  const last = answers.at(-1)
  const by = last ? ` by ${last.by}${last.reason ? `: ${last.reason}` : ''}` : ''
  return `${last?.at ?? endedAt ?? expiresAt} answered ${id} ${stateWords[state]}${by}`
}

function toEndedLine({ id, endedAt, startedAt, tool, state }: EndedCall): string {
  return `${endedAt ?? startedAt} ended ${id} ${tool}: ${state}`
}

import type { Approval } from '../../../../contract/approval.ts'
import { toVisible } from '../../../../shared/visible.ts'
import { exit } from '../../../terminal/exit.ts'
import { leaveOnSignal } from '../../../terminal/leave.ts'
import type { Terminal } from '../../../terminal/terminal.ts'
import { stateWords } from '../approval-view.ts'
import { type Following, follow } from './follow.ts'
import type { EndedCall, Happening } from './state.ts'

/** One line for each question, each answer and each end of a call that was asked about. Nobody is there to answer. */
export async function printLines(terminal: Terminal, following: Omit<Following, 'signal' | 'on'>): Promise<number> {
  const leaving = new AbortController()
  const stayed = leaveOnSignal(leaving)
  /** Calls that were told of and have not ended: a list that is read again holds them too. */
  const told = new Set<string>()
  process.stdout.on('error', () => leaving.abort()) // nobody reads it any more
  try {
    await follow({ ...following, signal: leaving.signal, on })
  } finally {
    leaving.abort()
    stayed()
  }
  return exit.done

  function on(happening: Happening): void {
    if (happening.kind === 'linked')
      terminal.talk(happening.linked ? 'Listening.' : 'The gateway is away; looking for it.')
    if (happening.kind === 'listed') for (const approval of happening.items) tellAsked(approval)
    if (happening.kind === 'question') {
      if (happening.name === 'question-asked') tellAsked(happening.approval)
      else
        terminal.line(
          { event: happening.name, approval: happening.approval },
          toVisible(toAnsweredLine(happening.approval)),
        )
    }
    if (happening.kind === 'call-ended' && told.delete(happening.call.id))
      terminal.line({ event: happening.kind, call: happening.call }, toVisible(toEndedLine(happening.call)))
  }

  function tellAsked(approval: Approval): void {
    if (told.has(approval.call)) return
    told.add(approval.call)
    terminal.line({ event: 'question-asked', approval }, toVisible(toAskedLine(approval)))
  }
}

function toAskedLine({ id, askedAt, risk, principal, title, tool, arguments: given }: Approval): string {
  return `${askedAt} asked ${id} ${risk} ${principal} ${tool}: ${title} ${JSON.stringify(given)}`
}

function toAnsweredLine({ id, state, answers, endedAt, expiresAt }: Approval): string {
  const last = answers.at(-1)
  const by = last ? ` by ${last.by}${last.reason ? `: ${last.reason}` : ''}` : ''
  return `${last?.at ?? endedAt ?? expiresAt} answered ${id} ${stateWords[state]}${by}`
}

function toEndedLine({ id, endedAt, startedAt, tool, state }: EndedCall): string {
  return `${endedAt ?? startedAt} ended ${id} ${tool}: ${state}`
}

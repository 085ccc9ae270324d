import { z } from 'zod'
import { Call, callEndStates } from '../../contract/call.ts'
import { toClockTime, toDuration } from '../../shared/time.ts'
import { toVisible } from '../../shared/visible.ts'
import { toClientError } from '../client/client.ts'
import { type Heard, isPassing, listen } from '../client/events.ts'
import { exit } from '../terminal/exit.ts'
import { leaveOnSignal } from '../terminal/leave.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { paintCall, toWorked } from './call-times.ts'
import type { Context } from './command.ts'
import { goLive } from './live.ts'

type CallFilter = {
  readonly principal?: string | undefined
  readonly tool?: string | undefined
  readonly state?: Call['state'] | undefined
}

type LiveCall = Omit<Call, 'arguments'>

const names = ['call-started', 'call-waiting', 'call-ended'] as const
const AboutCall = z.object({ call: Call.omit({ arguments: true }) })
const catchUpPage = 200

/** Prints one line per state change of a call, until Ctrl+C. After a lost connection it prints the missed changes, each once. */
export async function watchCalls(context: Context, filter: CallFilter, retry: number): Promise<number> {
  const { terminal } = context
  const { address, client, recheck } = await goLive(context)
  const leaving = new AbortController()
  const stayed = leaveOnSignal(leaving)
  const failed = Promise.withResolvers<never>()
  const toLine = createLines(terminal)
  /** The last printed state of each call that has not ended. */
  const open = new Map<string, Call['state']>()
  let newest = ''
  let ready = Promise.resolve()

  const listening = listen({
    address,
    names,
    recheck,
    patience: retry * 1000,
    signal: leaving.signal,
    onLinked: (afresh) => afresh && inOrder(catchUp),
    onLost: () => terminal.talk('Lost the connection to the gateway; reconnecting.'),
    onEvent(heard) {
      if (heard.name === 'reset') return inOrder(catchUp)
      const call = toCall(heard)
      if (call) inOrder(() => report(call))
    },
  })
  try {
    await Promise.race([listening, failed.promise])
  } finally {
    leaving.abort()
    stayed()
  }
  return exit.done

  /** Some steps wait for an answer of the gateway; without a queue, lines would be printed in the wrong order. */
  function inOrder(work: () => Promise<void>): void {
    ready = ready.then(work).catch((error: unknown) => {
      const failure = toClientError(error, address.url)
      if (!isPassing(failure)) failed.reject(failure)
    })
  }

  /** The first time: calls that have not ended. Later also calls that started or ended while the connection was lost. */
  async function catchUp(): Promise<void> {
    const { principal, tool } = filter
    const { items } = await client.calls.list({ limit: catchUpPage, principal, tool })
    const isFirst = newest === ''
    for (const call of items.toReversed()) {
      if (isFirst ? !isEnded(call) : open.has(call.id) || call.id > newest) await report(call)
    }
    newest = [newest, items[0]?.id ?? ''].toSorted().at(-1) ?? ''
  }

  async function report(call: LiveCall): Promise<void> {
    if (open.get(call.id) === call.state) return
    const waited = open.get(call.id) === 'waiting' || /^approved by /.test(call.decision ?? '')
    newest = call.id > newest ? call.id : newest
    if (isEnded(call)) open.delete(call.id)
    else open.set(call.id, call.state)
    if (!fits(call, filter) || leaving.signal.aborted) return
    // An event does not contain the waiting time; the stored call does.
    const shown = isEnded(call) && waited ? await client.calls.get({ params: { id: call.id } }) : call
    const { arguments: _arguments, ...rest }: LiveCall & { arguments?: unknown } = shown
    terminal.line(rest, toLine(shown))
  }
}

function toCall({ data }: Heard): LiveCall | undefined {
  return AboutCall.safeParse(data).data?.call
}

function isEnded({ state }: LiveCall): boolean {
  return callEndStates.some((each) => each === state)
}

function fits(call: LiveCall, { principal, tool, state }: CallFilter): boolean {
  return (
    (principal === undefined || call.principal === principal) &&
    (tool === undefined || call.tool === tool) &&
    (state === undefined || call.state === state)
  )
}

const widest = { principal: 24, tool: 40 }

/** A column is as wide as its longest printed value so far, up to a limit. */
function createLines(terminal: Terminal): (call: LiveCall) => string {
  const widths = { principal: 12, tool: 16 }
  const column = (name: keyof typeof widths, text: string) => {
    widths[name] = Math.min(widest[name], Math.max(widths[name], text.length))
    return text.padEnd(widths[name])
  }
  return (call) => {
    const at = new Date(call.endedAt ?? (call.state === 'waiting' ? call.startedAt : Date.now()))
    const state = paintCall(terminal, call.state)(call.state.padEnd(10))
    const who = column('principal', toVisible(call.principal))
    const what = column('tool', toVisible(call.tool))
    return [terminal.colours.dim(toClockTime(at)), who, what, state, toTimes(call)].join('  ').trimEnd()
  }
}

function toTimes(call: LiveCall): string {
  const waited = call.waitedMs === undefined ? '' : `, waited ${toDuration(call.waitedMs)}`
  return call.durationMs === undefined ? '' : `${toDuration(toWorked(call))}${waited}`
}

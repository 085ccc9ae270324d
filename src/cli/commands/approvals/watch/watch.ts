import { GatewayError, toGatewayError } from '../../../../contract/errors.ts'
import { toVisible } from '../../../../shared/visible.ts'
import type { Address } from '../../../client/address.ts'
import { type Client, toClientError } from '../../../client/client.ts'
import { demandPerson } from '../../../client/person.ts'
import { exit } from '../../../terminal/exit.ts'
import { leaveOnSignal } from '../../../terminal/leave.ts'
import type { Context } from '../../command.ts'
import { goLive } from '../../live.ts'
import { type Following, follow } from './follow.ts'
import { openFullScreen } from './full-screen.ts'
import { printLines } from './print.ts'
import { draw, type Look, toView } from './screen.ts'
import { advance, createWatch, describePending, type Happening, type Pending } from './state.ts'

/** No event reports that an agent has disconnected, or how a changed tool differs; so both are polled. */
const lookEveryMs = 5000
const ringEveryMs = 2000

/** Shows approvals as they arrive. At a terminal a person can answer them; otherwise they are only printed. */
export async function runWatch(context: Context, { retry, bell }: { retry: number; bell: boolean }): Promise<number> {
  const { terminal } = context
  const atTerminal = terminal.interactive && Boolean(process.stdout.isTTY) && process.env.TERM !== 'dumb'
  if (atTerminal && !context.settings.person)
    throw new GatewayError('person-needed', 'Answering approvals needs a signed-in user; a token is not enough')
  const following = { ...(await goLive(context)), patience: retry * 1000 }
  return atTerminal ? answerLive(context, following, bell) : printLines(terminal, following)
}

async function answerLive(
  { terminal }: Context,
  following: Omit<Following, 'signal' | 'on'>,
  bell: boolean,
): Promise<number> {
  const { address, client } = following
  const person = await nameOf(client, address)
  const leaving = new AbortController()
  const sending = new Set<Promise<void>>()
  let watch = createWatch(person)
  let rungAt = 0
  let looked: { readonly id: string; readonly at: number } | undefined
  const screen = openFullScreen({
    input: process.stdin,
    output: process.stdout,
    onKey: (key) => happened({ kind: 'key', key, view: toView(watch, look()), now: Date.now() }),
    onResize: () => screen.show(draw(watch, look())),
    onGone: () => leaving.abort(),
  })

  function look(): Look {
    return { size: screen.size(), now: Date.now(), colours: terminal.colours }
  }

  function happened(happening: Happening): void {
    const known = new Set(watch.open.map(({ id }) => id))
    const step = advance(watch, happening)
    if (step.watch === watch && happening.kind === 'call-ended') return // many calls end that this screen does not show
    watch = step.watch
    if (watch.open.some(({ id }) => !known.has(id)) && happening.kind === 'approval') ring()
    if (step.send) send(step.send)
    if (step.end) leaving.abort()
    readDetail()
    screen.show(draw(watch, look()))
  }

  function send({ approval, said }: Pending): void {
    const sent = client.approvals
      .answer({ params: { id: approval.id }, body: { ...said, hash: approval.hash } })
      .then(
        (answered) => happened({ kind: 'sent', approval: answered }),
        (error: unknown) => {
          const { message, entry } = toClientError(error, address.url)
          happened({ kind: 'refused', message: `Not answered: ${message}. ${entry.hint}` })
        },
      )
      .finally(() => sending.delete(sent))
    sending.add(sent)
  }

  /** Rings once for approvals that arrive together. */
  function ring(): void {
    if (!bell || Date.now() - rungAt < ringEveryMs) return
    rungAt = Date.now()
    screen.ring()
  }

  function readDetail(): void {
    const { shown } = watch
    if (shown?.state !== 'waiting') return
    if (looked?.id === shown.id && Date.now() - looked.at < lookEveryMs) return
    looked = { id: shown.id, at: Date.now() }
    client.approvals.get({ params: { id: shown.id } }).then(
      (detail) => leaving.signal.aborted || happened({ kind: 'read', detail }),
      () => {}, // the event stream reports a lost connection
    )
  }

  const beat = setInterval(() => happened({ kind: 'time', now: Date.now() }), 250)
  const stayed = leaveOnSignal(leaving)
  let failure: GatewayError | undefined
  try {
    screen.show(draw(watch, look()))
    await follow({ ...following, signal: leaving.signal, on: happened })
  } catch (error) {
    failure = toGatewayError(error)
  } finally {
    clearInterval(beat)
    leaving.abort()
    await Promise.all(sending)
    stayed()
    screen.close()
  }
  for (const line of watch.told) terminal.talk(toVisible(line))
  if (watch.pending) terminal.talk(`Not sent: ${toVisible(describePending(watch.pending))}`)
  if (failure) throw failure
  return exit.done
}

async function nameOf(client: Client, { url }: Address): Promise<string> {
  try {
    return (await demandPerson(client)).name
  } catch (error) {
    throw toClientError(error, url)
  }
}

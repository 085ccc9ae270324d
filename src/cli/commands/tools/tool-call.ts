import { setTimeout as pause } from 'node:timers/promises'
import type { CallAnswer, CallWaiting } from '../../../contract/api/tools.ts'
import type { Approval } from '../../../contract/approval.ts'
import { type ErrorCode, GatewayError } from '../../../contract/errors.ts'
import type { JsonObject } from '../../../contract/json.ts'
import { toRelative } from '../../../shared/time.ts'
import { toVisible } from '../../../shared/visible.ts'
import type { Client } from '../../client/client.ts'
import { toRunnable } from '../../terminal/connect-line.ts'
import { exit } from '../../terminal/exit.ts'
import { leaveOnSignal } from '../../terminal/leave.ts'
import { type Context, patience } from '../command.ts'
import { suggesting } from '../suggest.ts'
import { readWhole, restOf } from './rest.ts'
import { isFailed, renderResult } from './result.ts'

export type WantedCall = {
  readonly name: string
  readonly arguments: JsonObject
  readonly toolset?: string | undefined
  readonly key?: string | undefined
  /** If the result was cut, reads the rest. */
  readonly full: boolean
  /** If the call requires approval, waits for the answer. */
  readonly wait: boolean
}

const pollMs = 1000
/** How long to wait for a gateway that restarts; it keeps the approval. */
const mostAwayMs = 60_000

/** Runs a tool. If the call requires approval, waits for the answer and then repeats the call, which runs. */
export async function callTool(context: Context, wanted: WantedCall): Promise<number> {
  let answer = await send(context, wanted)
  while ('approval' in answer) {
    if (!wanted.wait) return showWaiting(context, answer)
    const settled = await waitForAnswer(context, answer.approval)
    if (!settled) return showWaiting(context, answer)
    answer = await send(context, wanted)
    // A parallel identical call has already received the refusal; repeating would request a new approval.
    const refusal = 'approval' in answer ? toRefusal(settled) : undefined
    if (refusal) throw refusal
  }
  return showResult(context, answer)
}

function send({ request }: Context, wanted: WantedCall): Promise<CallAnswer | CallWaiting> {
  const { name, key, toolset, full } = wanted
  return request(
    `Calling ${toVisible(name)}`,
    (client) =>
      suggesting(client, name, async () => {
        const called = await client.tools.call({
          params: { name },
          headers: { 'idempotency-key': key },
          body: { arguments: wanted.arguments, toolset },
        })
        if (called.status === 202 || !full) return called.body
        return { ...called.body, result: await readWhole(client, called.body.result) }
      }),
    patience.calling,
  )
}

function showResult({ terminal }: Context, answer: CallAnswer): number {
  const failed = isFailed(answer.result)
  terminal.answer(answer, () => renderResult(answer.result))
  const rest = restOf(answer.result)
  if (rest) terminal.next(`${rest} for the rest, or repeat the call with --full`)
  if (failed) terminal.talk(terminal.talkColours.red('The tool failed; its message is above.'))
  return failed ? exit.toolFailed : exit.done
}

async function announce({ terminal, request, address }: Context, { id, title }: Approval): Promise<void> {
  const { url } = await address()
  const page = await request('Reading the address of the dashboard', (client) => pageOf(client, id, url))
  terminal.talk(`Waiting for approval: ${toVisible(title)} (${id})`)
  terminal.talk(`  ${toVisible(page)}`)
  terminal.talk(toRunnable(`  sallyport approvals approve ${id} --as NAME`))
}

/** The public address of the gateway. An agent's status does not contain it, so an agent gets the address it uses. */
async function pageOf(client: Client, id: string, url: string): Promise<string> {
  const status = await client.status()
  return `${('url' in status ? status.url : url).replace(/\/$/, '')}/approvals/${id}`
}

/** Prints what it waits for. Returns the approval when it no longer waits, or undefined after an interruption. */
async function waitForAnswer(context: Context, asked: Approval): Promise<Approval | undefined> {
  const { id } = asked
  const leaving = new AbortController()
  const stayed = leaveOnSignal(leaving)
  const { signal } = leaving
  try {
    await announce(context, asked)
    return await context.request('Waiting for approval', async (client) => {
      let lastSeen = performance.now()
      while (!signal.aborted) {
        const approval = await look(client, id, performance.now() - lastSeen < mostAwayMs)
        if (approval) lastSeen = performance.now()
        if (approval && approval.state !== 'waiting') return approval
        await pause(pollMs, undefined, { signal }).catch(() => {})
      }
      return undefined
    })
  } finally {
    stayed()
  }
}

/** Undefined while the gateway is unreachable and `mayBeAway` is set. */
async function look(client: Client, id: string, mayBeAway: boolean): Promise<Approval | undefined> {
  const { toClientError } = await import('../../client/client.ts')
  try {
    return await client.approvals.get({ params: { id } })
  } catch (error) {
    const failure = toClientError(error, 'The gateway')
    if (mayBeAway && (failure.code === 'unreachable' || failure.code === 'shutting-down')) return undefined
    throw failure
  }
}

function showWaiting({ terminal }: Context, answer: CallWaiting): number {
  const { id, title, expiresAt } = answer.approval
  terminal.answer(answer, () => `${id}  ${toVisible(title)}`)
  terminal.talk(`The call waits for approval. The approval expires ${toRelative(expiresAt, Date.now())}.`)
  terminal.talk('When it is approved, repeat the same command. Then the call runs.')
  terminal.next(`sallyport approvals show ${id}`)
  return exit.waiting
}

const refusals: Partial<Record<Approval['state'], ErrorCode>> = {
  denied: 'approval-denied',
  expired: 'approval-expired',
  lapsed: 'approval-expired',
  withdrawn: 'approval-withdrawn',
}

function toRefusal({ id, state, title, answers }: Approval): GatewayError | undefined {
  const code = refusals[state]
  if (!code) return undefined
  const last = answers.at(-1)
  const by = last && state === 'denied' ? ` by ${last.by}${last.reason ? `: ${last.reason}` : ''}` : ''
  return new GatewayError(code, `${title} was ${state}${by}`, { approval: id })
}

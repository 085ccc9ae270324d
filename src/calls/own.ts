import { z } from 'zod'
import type { ApprovalStore } from '../approvals/approvals.ts'
import { approvalStatusName, approvalWait, ownServer, type Target, waitForApprovalName } from '../catalog/catalog.ts'
import { GatewayError } from '../contract/errors.ts'
import type { Permit } from '../contract/permit.ts'
import type { Clock } from '../lib/clock.ts'
import { onAbort, toCancellation } from '../lib/signals.ts'
import type { Decision } from '../policy/policy.ts'
import type { StoredQuestion } from '../storage/tables/questions.ts'
import { type Answer, toResultAnswer } from '../wire/answer.ts'
import type { KeptResults } from './kept.ts'

/** The gateway's own tools: what they answer fits by itself, and is never cut again. */
export type OwnTools = {
  answer(permit: Permit, signal: AbortSignal): Promise<Answer>
  /** Whoever waits for an answer of a person is told how it stands. */
  close(): void
}

type OwnParts = {
  readonly kept: Pick<KeptResults, 'read'>
  readonly approvalStore: Pick<ApprovalStore, 'find' | 'settled'>
  readonly clock: Clock
}

const Wanted = z.object({
  id: z.string().min(1).max(200),
  seconds: z.coerce.number().min(0).max(approvalWait.most).default(approvalWait.usual),
})

/** A rule that asks about everything would ask about asking: what tells how one's own question stands runs or is denied. */
export function withoutAsking({ connection, original }: Target, decision: Decision): Decision {
  if (decision.action !== 'ask' || connection !== ownServer || !isAboutApprovals(original)) return decision
  return { ...decision, action: 'allow', because: 'it only tells how a question of the caller stands' }
}

function isAboutApprovals(tool: string): boolean {
  return tool === approvalStatusName || tool === waitForApprovalName
}

export function createOwnTools({ kept, approvalStore, clock }: OwnParts): OwnTools {
  const leaving = new AbortController()

  return {
    async answer(permit, signal) {
      if (!isAboutApprovals(permit.original)) return kept.read(permit)
      const { id, seconds } = readWanted(permit)
      const question = await findOwn(permit, id)
      if (permit.original === approvalStatusName) return tell(question)
      await untilSettled(question, seconds * 1000, signal)
      if (signal.aborted) throw toCancellation(signal, 'unsent')
      return tell(await findOwn(permit, id))
    },
    close: () => leaving.abort(),
  }

  /** The question of somebody else is no different from one that never was. */
  async function findOwn({ principalId }: Permit, id: string): Promise<StoredQuestion> {
    const question = await approvalStore.find(id)
    if (question?.principalId === principalId) return question
    throw new GatewayError('approval-not-found', `No approval of yours has the id ${JSON.stringify(id)}`)
  }

  async function untilSettled(question: StoredQuestion, milliseconds: number, signal: AbortSignal): Promise<void> {
    const ending = new AbortController()
    const end = () => ending.abort()
    const cancel = clock.after(milliseconds, end)
    const unlinks = [signal, leaving.signal].map((each) => onAbort(each, end))
    try {
      await approvalStore.settled(question, ending.signal)
    } catch (error) {
      if (!ending.signal.aborted) throw error
    } finally {
      cancel()
      for (const unlink of unlinks) unlink()
    }
  }
}

function tell(question: StoredQuestion): Answer {
  const { id, state, tool, expiresAt, answers } = question
  const last = answers.at(-1)
  const reason = state === 'denied' ? last?.reason : undefined
  const next = nextSteps[state](question)
  const why = reason === undefined ? '' : ` The reason: ${reason}.`
  return toResultAnswer({
    content: [{ type: 'text', text: `${state}: approval ${id} for ${tool}.${why} ${next}` }],
    structuredContent: { id, state, tool, ...(reason !== undefined && { reason }), expiresAt, next },
  })
}

const askAgain = 'Nothing was sent. Repeat the call to ask again.'

const nextSteps: Readonly<Record<StoredQuestion['state'], (question: StoredQuestion) => string>> = {
  waiting: ({ id, expiresAt }) =>
    `No person has answered yet; until ${expiresAt} one may. Wait with ${waitForApprovalName} ${JSON.stringify({ id })}, or repeat the same call.`,
  approved: () => 'Repeat the same call: it runs now, once.',
  used: ({ live }) =>
    live
      ? 'It has run. Repeat the same call to get its result.'
      : 'It has run, and its result was given. The same call made again is a new one.',
  denied: () => 'A person said no, and nothing was sent. Mind the reason before trying anything else.',
  expired: () => askAgain,
  lapsed: () => `It was approved, and the same call was not made again in time. ${askAgain}`,
  withdrawn: ({ withdrawnBecause }) =>
    `${withdrawnBecause ?? 'What was approved is not what would run now'}. ${askAgain}`,
}

function readWanted(permit: Permit): z.infer<typeof Wanted> {
  const read = Wanted.safeParse(permit.arguments)
  if (read.success) return read.data
  const [issue] = read.error.issues
  throw new GatewayError('arguments-invalid', `${issue?.path.join('.') ?? 'arguments'}: ${issue?.message}`)
}

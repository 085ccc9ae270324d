import type { ApprovalAnswer } from '../contract/approval.ts'
import { GatewayError } from '../contract/errors.ts'
import type { Grant } from '../contract/grant.ts'
import type { ResolvedCall } from '../contract/permit.ts'
import { toAnswerEntry, toCallEntry, toOutcomeBody, toQuestionEntry } from './tables/audit.ts'
import type { CallStore } from './tables/calls.ts'
import type { GrantStore } from './tables/grants.ts'
import { type IdempotencyStore, toApprovalKey } from './tables/idempotency.ts'
import type { NewQuestion, QuestionStore, StoredQuestion } from './tables/questions.ts'
import type { Unit } from './unit.ts'
import type { Writer } from './writer.ts'

/** What a person said, and what becomes of the question. */
export type Said = {
  readonly answer: ApprovalAnswer
  readonly next: 'waiting' | 'approved' | 'denied'
  readonly grant?: Grant | undefined
}

/** A question and its call move together: each step is one unit, and of several at once one stands. */
export type Asking = {
  /** The call waits from now on. False when the same principal asks the same already. */
  ask(call: ResolvedCall, question: NewQuestion): Promise<boolean>
  /** False when somebody else was faster, or its time is up. */
  answer(question: StoredQuestion, said: Said): Promise<boolean>
  /** False when it was answered, or is not over yet. */
  expire(question: StoredQuestion): Promise<boolean>
  withdraw(question: StoredQuestion, why: string): Promise<boolean>
  /** Whoever asked gets the outcome: an equal call is a new one when this resolves. Survives a store that is briefly broken. */
  deliver(question: Pick<StoredQuestion, 'id' | 'principalId'>): Promise<void>
}

type AskingParts = {
  writer: Writer
  calls: CallStore
  questions: QuestionStore
  grants: GrantStore
  keys: IdempotencyStore
  instance: string
  now(): number
}

export function createAsking(parts: AskingParts): Asking {
  const { writer, calls, questions, grants, keys, instance, now } = parts

  async function commit(unit: Unit): Promise<boolean> {
    const outcome = await writer.commit(unit)
    if (outcome.kind === 'done') return true
    // One that is there already is told by the unique column, everything else by a row that is no longer as it was.
    if (outcome.by === 'expectation' || outcome.step === 0) return false
    throw new GatewayError('internal', `A question could not be written: ${outcome.reason}`)
  }

  function toEnd(
    question: StoredQuestion,
    state: 'denied' | 'expired',
    error: { code: string; message: string },
  ): Unit {
    const endedAt = now()
    const end = { state, endedAt, error } as const
    const { tool, server, arguments: args, meta, risk, reason: decision } = question
    // It has no intent, as any call that was refused: the entry says what was asked for as well.
    const body = JSON.stringify({ tool, server, arguments: args, meta, risk, decision, ...toOutcomeBody(end) })
    const entry = { ...toCallEntry('outcome', { ...question, id: question.call }, endedAt), body }
    return [calls.endWaiting(question.call, end), { entry }]
  }

  return {
    ask: (call, question) =>
      commit([
        questions.insert(question, instance),
        calls.insertWaiting(call),
        { entry: toQuestionEntry(question, now()) },
      ]),
    answer(question, { answer, next, grant }) {
      const at = Date.parse(answer.at)
      const answers = [...question.answers, answer]
      const denied = { code: 'approval-denied', message: answer.reason ?? 'A person denied it' }
      return commit([
        questions.answer(question, answers, { state: next, at, ...(grant && { grant: grant.id }) }),
        ...(grant ? [grants.insert(grant)] : []),
        { entry: toAnswerEntry(question, answer, grant) },
        ...(next === 'denied' ? toEnd(question, 'denied', denied) : []),
      ])
    },
    expire: (question) =>
      commit([
        questions.expire(question, now()),
        ...toEnd(question, 'expired', { code: 'approval-expired', message: toExpiryText(question) }),
      ]),
    withdraw: (question, why) =>
      commit([
        questions.withdraw(question.id, why, now()),
        ...toEnd(question, 'denied', { code: 'approval-withdrawn', message: why }),
      ]),
    async deliver({ id, principalId }) {
      const unit = [questions.deliver(id), keys.leave(principalId, toApprovalKey(id))]
      await writer.commit(unit).catch(() => writer.keep(unit))
    },
  }
}

function toExpiryText({ state }: StoredQuestion): string {
  return state === 'approved'
    ? 'It was approved, and the same call was not made again in time'
    : 'Nobody answered in time'
}

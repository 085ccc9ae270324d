import type { ApprovalAnswer } from '../contract/approval.ts'
import { GatewayError } from '../contract/errors.ts'
import type { Grant } from '../contract/grant.ts'
import type { ResolvedCall } from '../contract/permit.ts'
import type { NewApproval, StoredApproval, StoredApprovals } from './tables/approvals.ts'
import { toAnswerEntry, toCallEntry, toOutcomeBody, toRequestEntry } from './tables/audit.ts'
import type { CallStore } from './tables/calls.ts'
import type { GrantStore } from './tables/grants.ts'
import { type IdempotencyStore, toApprovalKey } from './tables/idempotency.ts'
import type { Unit } from './unit.ts'
import type { Writer } from './writer.ts'

/** An answer and the state of the approval after it. */
export type AnswerChange = {
  readonly answer: ApprovalAnswer
  readonly next: 'waiting' | 'approved' | 'denied'
  readonly grant?: Grant | undefined
}

/**
 * The changes of a stored approval. Each change writes the approval, its call and the audit entry in one commit.
 * Returns false, and writes nothing, if the approval was no longer in the expected state. So of several concurrent
 * changes exactly one succeeds.
 */
export type ApprovalChanges = {
  /** Stores the approval and its waiting call. False if an equal call of the same principal is waiting already. */
  request(call: ResolvedCall, approval: NewApproval): Promise<boolean>
  /** False if another person answered first, or the approval has expired. */
  answer(approval: StoredApproval, change: AnswerChange): Promise<boolean>
  /** False if the approval was answered or has not expired yet. */
  expire(approval: StoredApproval): Promise<boolean>
  withdraw(approval: StoredApproval, why: string): Promise<boolean>
  /**
   * Marks the outcome as delivered to the caller. Afterwards an equal call is a new call. If the database cannot be
   * written, the change is queued and written later.
   */
  deliver(approval: Pick<StoredApproval, 'id' | 'principalId'>): Promise<void>
}

type ApprovalChangesParts = {
  writer: Writer
  calls: CallStore
  approvals: StoredApprovals
  grants: GrantStore
  keys: IdempotencyStore
  instance: string
  now(): number
}

export function createApprovalChanges(parts: ApprovalChangesParts): ApprovalChanges {
  const { writer, calls, approvals, grants, keys, instance, now } = parts

  async function commit(unit: Unit): Promise<boolean> {
    const outcome = await writer.commit(unit)
    if (outcome.kind === 'done') return true
    // Step 0 fails at the unique column `live`. Every other step fails because its row was changed by another request.
    if (outcome.by === 'expectation' || outcome.step === 0) return false
    throw new GatewayError('internal', `An approval could not be written: ${outcome.reason}`)
  }

  function toEnd(
    approval: StoredApproval,
    state: 'denied' | 'expired',
    error: { code: string; message: string },
  ): Unit {
    const endedAt = now()
    const end = { state, endedAt, error } as const
    const { tool, server, arguments: args, meta, risk, reason: decision } = approval
    // A call that was never sent has no intent entry, so its outcome entry also contains the tool and the arguments.
    const body = JSON.stringify({ tool, server, arguments: args, meta, risk, decision, ...toOutcomeBody(end) })
    const entry = { ...toCallEntry('outcome', { ...approval, id: approval.call }, endedAt), body }
    return [calls.endWaiting(approval.call, end), { entry }]
  }

  return {
    request: (call, approval) =>
      commit([
        approvals.insert(approval, instance),
        calls.insertWaiting(call),
        { entry: toRequestEntry(approval, now()) },
      ]),
    answer(approval, { answer, next, grant }) {
      const at = Date.parse(answer.at)
      const answers = [...approval.answers, answer]
      const denied = { code: 'approval-denied', message: answer.reason ?? 'A person denied the call' }
      return commit([
        approvals.answer(approval, answers, { state: next, at, ...(grant && { grant: grant.id }) }),
        ...(grant ? [grants.insert(grant)] : []),
        { entry: toAnswerEntry(approval, answer, grant) },
        ...(next === 'denied' ? toEnd(approval, 'denied', denied) : []),
      ])
    },
    expire: (approval) =>
      commit([
        approvals.expire(approval, now()),
        ...toEnd(approval, 'expired', { code: 'approval-expired', message: toExpiryText(approval) }),
      ]),
    withdraw: (approval, why) =>
      commit([
        approvals.withdraw(approval.id, why, now()),
        ...toEnd(approval, 'denied', { code: 'approval-withdrawn', message: why }),
      ]),
    async deliver({ id, principalId }) {
      const unit = [approvals.deliver(id), keys.leave(principalId, toApprovalKey(id))]
      await writer.commit(unit).catch(() => writer.keep(unit))
    },
  }
}

function toExpiryText({ state }: StoredApproval): string {
  return state === 'approved' ? 'The call was approved, but it was not repeated in time' : 'Nobody answered in time'
}

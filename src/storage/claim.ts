import { GatewayError } from '../contract/errors.ts'
import type { CallEnd, Permit, ResolvedCall } from '../contract/permit.ts'
import type { Clock } from '../lib/clock.ts'
import {
  type RefusalCount,
  toIntentEntry,
  toLateEntry,
  toOutcomeEntry,
  toRefusalEntry,
  toRefusalsEntry,
} from './tables/audit.ts'
import type { CallStore } from './tables/calls.ts'
import type { GrantStore } from './tables/grants.ts'
import type { IdempotencyStore, KeyEnd } from './tables/idempotency.ts'
import type { QuestionStore } from './tables/questions.ts'
import type { Statement, Unit } from './unit.ts'
import type { Writer } from './writer.ts'

export type Claims = {
  claim(call: ResolvedCall): Promise<Permit>
  refuse(call: ResolvedCall, end: CallEnd): Promise<void>
  /** Refused calls that have no entry of their own. Survives a store that is briefly broken. */
  countRefusals(refusals: RefusalCount): void
  finish(call: ResolvedCall, end: CallEnd): void
  finishOnce(call: ResolvedCall, end: CallEnd, key: KeyEnd): Promise<void>
  markLate(call: string): void
  /** Hands the reading calls that wait for their shared commit to the writer now. */
  flushReads(): void
}

type ClaimsParts = {
  writer: Writer
  calls: CallStore
  keys: IdempotencyStore
  questions: QuestionStore
  grants: GrantStore
  clock: Clock
}

/** A reading call whose row is not written yet; most end before it is. */
type BufferedRead = { readonly call: ResolvedCall; readonly claimedAt: number; end?: CallEnd; late: boolean }

/** 50 ms are promised, the commit included. */
const readDelay = 35
const mostBuffered = 2000

export function createClaims({ writer, calls, keys, questions, grants, clock }: ClaimsParts): Claims {
  let buffered = new Map<string, BufferedRead>()
  let cancelFlush = () => {}

  function bufferRead(call: ResolvedCall): void {
    if (buffered.size >= mostBuffered) flushReads()
    if (buffered.size === 0) cancelFlush = clock.after(readDelay, flushReads)
    buffered.set(call.id, { call, claimedAt: clock.now(), late: false })
  }

  function flushReads(): void {
    cancelFlush()
    const reads = buffered
    buffered = new Map()
    for (const read of reads.values()) writer.keep(toReadUnit(read))
  }

  function toReadUnit({ call, claimedAt, end, late }: BufferedRead): Unit {
    const intent = { entry: toIntentEntry(call, claimedAt) }
    if (!end) return [calls.insert(call), intent]
    return [calls.insert(call, { ...end, late }), intent, { entry: toOutcomeEntry(call, end) }]
  }

  async function commitIntent(call: ResolvedCall): Promise<void> {
    const key = call.once && keys.take({ ...call, once: call.once })
    const unit: Unit = [...toClaimSteps(call, key), { entry: toIntentEntry(call, clock.now()) }]
    const outcome = await writer.commit(unit).catch((error: unknown) => {
      // Whether it reached the disk before the store broke is not known. If it did, this closes it: nothing was sent.
      const end = toUnrecordedEnd(call, clock.now())
      writer.keep(toEndUnit(call, end, { kind: 'released' }), () => keepLate(call, end))
      throw error
    })
    if (outcome.kind === 'done') return
    if (outcome.by === 'expectation') {
      if (call.once && unit[outcome.step] === key) throw keyTaken(call.once.key)
      if (call.permission) throw new GatewayError('permission-spent', `The permission for ${call.tool} is used up`)
    }
    throw new GatewayError('internal', `The call ${call.id} was not claimed: ${outcome.reason}`)
  }

  /**
   * While the key or the permission is gone nothing else happens. A call that finds its key taken gets what another got,
   * whether or not the grant has room; one that finds its approval used does so whatever the key.
   */
  function toClaimSteps(call: ResolvedCall, key: Statement | undefined): Unit {
    const { permission } = call
    const taken = key ? [key] : []
    if (permission === undefined) return [...taken, calls.insert(call)]
    if ('grant' in permission) return [...taken, grants.spend(permission.grant), calls.insert(call)]
    return [questions.use(permission.question, clock.now()), ...taken, calls.start(call)]
  }

  function toEndUnit(call: ResolvedCall, end: CallEnd, key?: KeyEnd): Unit {
    const approval = toUnusedApproval(call, end)
    if (approval !== undefined) return toUnusedUnit(call, end, approval)
    const unit: Unit = [calls.end(call.id, end), { entry: toOutcomeEntry(call, end) }, ...toRefund(call, end)]
    return call.once && key ? [...unit, keys.end({ ...call, once: call.once }, key)] : unit
  }

  /**
   * Others may have taken this instance for dead and closed its call as `unknown`. That, and nothing else, gives way once
   * to the outcome that this instance knows. Nothing is refunded, and a key that others were told about is not freed.
   */
  function toLateUnit(call: ResolvedCall, end: CallEnd, key?: KeyEnd): Unit {
    const unit: Unit = [calls.endUnknown(call.id, end), { entry: toLateEntry(call, end) }]
    return call.once && key?.kind === 'done' ? [...unit, keys.end({ ...call, once: call.once }, key)] : unit
  }

  function keepLate(call: ResolvedCall, end: CallEnd, key?: KeyEnd): void {
    if (end.state !== 'unknown') writer.keep(toLateUnit(call, end, key))
  }

  /** The one rule: a grant pays for what was sent. Whatever certainly never left is given back, in the same commit. */
  function toRefund({ permission }: ResolvedCall, end: CallEnd): Unit {
    return end.unsent && permission && 'grant' in permission ? [grants.refund(permission.grant)] : []
  }

  /** The call waits again, its approval is as it was before, and the same call made again runs by it. */
  function toUnusedUnit(call: ResolvedCall, end: CallEnd, approval: string): Unit {
    const entry = { entry: toOutcomeEntry(call, { ...end, state: 'waiting' }) }
    const unit: Unit = [calls.waitAgain(call.id), entry, questions.release(approval)]
    return call.once ? [...unit, keys.end({ ...call, once: call.once }, { kind: 'released' })] : unit
  }

  return {
    async claim(call) {
      writer.assertWritable()
      if (call.risk === 'read' && !call.once && !call.permission) bufferRead(call)
      else await commitIntent(call)
      return toPermit(call)
    },
    async refuse(call, end) {
      const outcome = await writer.commit([calls.insert(call, end), { entry: toRefusalEntry(call, end) }])
      if (outcome.kind === 'refused') {
        throw new GatewayError('internal', `The refusal of ${call.id} was not recorded: ${outcome.reason}`)
      }
    },
    countRefusals: (refusals) => writer.keep([{ entry: toRefusalsEntry(refusals, clock.now()) }]),
    finish(call, end) {
      const read = buffered.get(call.id)
      if (read) read.end ??= end
      else writer.keep(toEndUnit(call, end), () => keepLate(call, end))
    },
    async finishOnce(call, end, key) {
      const unit = toEndUnit(call, end, key)
      const onUnmet = () => keepLate(call, end, key)
      const outcome = await writer.commit(unit).catch(() => void writer.keep(unit, onUnmet))
      if (outcome?.kind === 'refused' && outcome.by === 'expectation') onUnmet()
    },
    markLate(call) {
      const read = buffered.get(call)
      if (read?.end) read.late = true
      else writer.keep([calls.markLate(call)])
    },
    flushReads,
  }
}

/** The approval of a call that certainly was not sent; undefined for any other call. */
export function toUnusedApproval({ permission }: ResolvedCall, { unsent }: CallEnd): string | undefined {
  return unsent && permission && 'question' in permission ? permission.question : undefined
}

function toPermit(call: ResolvedCall): Permit {
  return call as Permit // the one cast: only a claim that stands gets here
}

function keyTaken(key: string): GatewayError {
  return new GatewayError('idempotency-busy', `The call with the key ${key} is still running`, { retryAfter: 1 })
}

function toUnrecordedEnd(call: ResolvedCall, now: number): CallEnd {
  return {
    state: 'failed',
    endedAt: now,
    durationMs: Math.max(0, now - call.startedAt),
    error: { code: 'storage-unavailable', message: 'Not sent: whether it was recorded was not known' },
    unsent: true,
  }
}

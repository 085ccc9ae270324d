import { GatewayError } from '../contract/errors.ts'
import type { CallEnd, Permit, ResolvedCall } from '../contract/permit.ts'
import type { Clock } from '../lib/clock.ts'
import type { StoredApprovals } from './tables/approvals.ts'
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
import type { Statement, Unit } from './unit.ts'
import type { Writer } from './writer.ts'

export type Claims = {
  claim(call: ResolvedCall): Promise<Permit>
  refuse(call: ResolvedCall, end: CallEnd): Promise<void>
  /** Records refused calls that have no entry of their own. The entry is queued if the database is briefly unavailable. */
  countRefusals(refusals: RefusalCount): void
  finish(call: ResolvedCall, end: CallEnd): void
  finishOnce(call: ResolvedCall, end: CallEnd, key: KeyEnd): Promise<void>
  markLate(call: string): void
  /** Passes the buffered read calls to the writer now. */
  flushReads(): void
}

type ClaimsParts = {
  writer: Writer
  calls: CallStore
  keys: IdempotencyStore
  approvals: StoredApprovals
  grants: GrantStore
  clock: Clock
}

/** A read call that is not written yet. Most read calls end before they are written. */
type BufferedRead = { readonly call: ResolvedCall; readonly claimedAt: number; end?: CallEnd; late: boolean }

/** Read calls must be written within 50 ms, including the commit. */
const readDelay = 35
const mostBuffered = 2000

export function createClaims({ writer, calls, keys, approvals, grants, clock }: ClaimsParts): Claims {
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
      // Unknown whether the intent was written before the error. If it was, this unit closes it, because nothing was
      // sent.
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
   * If the key or the permission is no longer available, the whole unit is refused. The key comes before a grant: a
   * repeated call gets the stored result even if the grant is used up. A used approval comes first: it refuses the call
   * whatever the key.
   */
  function toClaimSteps(call: ResolvedCall, key: Statement | undefined): Unit {
    const { permission } = call
    const taken = key ? [key] : []
    if (permission === undefined) return [...taken, calls.insert(call)]
    if ('grant' in permission) return [...taken, grants.spend(permission.grant), calls.insert(call)]
    return [approvals.use(permission.approval, clock.now()), ...taken, calls.start(call)]
  }

  function toEndUnit(call: ResolvedCall, end: CallEnd, key?: KeyEnd): Unit {
    const approval = toUnusedApproval(call, end)
    if (approval !== undefined) return toUnusedUnit(call, end, approval)
    const unit: Unit = [calls.end(call.id, end), { entry: toOutcomeEntry(call, end) }, ...toRefund(call, end)]
    return call.once && key ? [...unit, keys.end({ ...call, once: call.once }, key)] : unit
  }

  /**
   * Another instance may have considered this instance dead and closed its call as `unknown`. Only that outcome may be
   * replaced, once, by the outcome that this instance knows. Nothing is refunded, and a key that other callers have
   * seen as used is not released.
   */
  function toLateUnit(call: ResolvedCall, end: CallEnd, key?: KeyEnd): Unit {
    const unit: Unit = [calls.endUnknown(call.id, end), { entry: toLateEntry(call, end) }]
    return call.once && key?.kind === 'done' ? [...unit, keys.end({ ...call, once: call.once }, key)] : unit
  }

  function keepLate(call: ResolvedCall, end: CallEnd, key?: KeyEnd): void {
    if (end.state !== 'unknown') writer.keep(toLateUnit(call, end, key))
  }

  /** A grant is charged only for calls that were sent. A call that was certainly not sent is refunded in the same commit. */
  function toRefund({ permission }: ResolvedCall, end: CallEnd): Unit {
    return end.unsent && permission && 'grant' in permission ? [grants.refund(permission.grant)] : []
  }

  /** The call waits again and its approval is unused again, so that the same call can run with it later. */
  function toUnusedUnit(call: ResolvedCall, end: CallEnd, approval: string): Unit {
    const entry = { entry: toOutcomeEntry(call, { ...end, state: 'waiting' }) }
    const unit: Unit = [calls.waitAgain(call.id), entry, approvals.release(approval)]
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

/** The approval of a call that was certainly not sent; undefined for any other call. */
export function toUnusedApproval({ permission }: ResolvedCall, { unsent }: CallEnd): string | undefined {
  return unsent && permission && 'approval' in permission ? permission.approval : undefined
}

function toPermit(call: ResolvedCall): Permit {
  return call as Permit // the only cast: reached only after a successful claim
}

function keyTaken(key: string): GatewayError {
  return new GatewayError('idempotency-busy', `The call with the key ${key} is still running`, { retryAfter: 1 })
}

function toUnrecordedEnd(call: ResolvedCall, now: number): CallEnd {
  return {
    state: 'failed',
    endedAt: now,
    durationMs: Math.max(0, now - call.startedAt),
    error: { code: 'storage-unavailable', message: 'Not sent: storage failed while the call was being recorded' },
    unsent: true,
  }
}

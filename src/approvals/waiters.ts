import type { Approval } from '../contract/approval.ts'
import { GatewayError, toGatewayError } from '../contract/errors.ts'
import type { EventTable } from '../contract/events.ts'
import type { Clock } from '../lib/clock.ts'
import type { Emitter } from '../lib/emitter.ts'
import type { Log } from '../lib/log.ts'
import { onAbort } from '../lib/signals.ts'
import type { Storage } from '../storage/storage.ts'
import type { NewApproval, StoredApproval } from '../storage/tables/approvals.ts'

/** The requests of this instance that wait for an approval, and the events about approvals. Expires approvals in time. */
export type Waiters = {
  settled(approval: StoredApproval, signal: AbortSignal): Promise<StoredApproval>
  /** How many requests of this instance wait for this approval. */
  waiting(id: string): number
  /** This instance has stored a new approval. */
  requested(approval: NewApproval): void
  /**
   * Runs a task that changes an approval and then reports that with `changed`. Until the task has ended, reading the
   * database does not report the approval: otherwise its change would be reported twice.
   */
  whileChanging<Result>(id: string, task: () => Promise<Result>): Promise<Result>
  /** This instance has changed an approval. */
  changed(approval: StoredApproval): void
  close(): void
}

type WaitersParts = {
  readonly approvals: Storage['approvals']
  readonly changes: Storage['changes']
  readonly clock: Clock
  readonly log: Log
  readonly emit: Emitter<EventTable>['emit']
  expire(approval: StoredApproval): Promise<void>
}

type Waiter = (approval: StoredApproval) => void

/** Other instances announce their changes at once. If an announcement is lost, the change is found after this time. */
const readEveryMs = 10_000
const mostRead = 500
/** Timers may fire a few milliseconds early. */
const roundingMs = 5

export function createWaiters({ approvals, changes, clock, log, emit, expire }: WaitersParts): Waiters {
  const waiters = new Map<string, Set<Waiter>>()
  /** Approvals that were waiting when they were last read. */
  const known = new Set<string>()
  /** How many tasks of this instance are changing an approval at the moment. */
  const changing = new Map<string, number>()
  /** Approvals that a read left out because of such a task. Another instance may have changed them. */
  const leftOut = new Set<string>()
  let reading: Promise<void> | undefined
  let again = false
  let closed = false
  let cancelRead = clock.after(readEveryMs, sweep)
  const stop = changes.on('approvals', readChanges)

  function sweep(): void {
    cancelRead = clock.after(readEveryMs, sweep)
    void readChanges()
  }

  /** Only one read runs at a time. A call during a read starts another read after it. */
  function readChanges(): Promise<void> {
    again = reading !== undefined
    reading ??= readOnce()
      .catch((error: unknown) => log.warn({ code: toGatewayError(error).code }, 'approvals could not be read'))
      .finally(() => {
        reading = undefined
        if (again && !closed) return readChanges()
      })
    return reading
  }

  async function readOnce(): Promise<void> {
    if (closed) return
    for (const approval of await approvals.overdue(clock.now(), mostRead)) await expire(approval)
    const { items } = await approvals.list({ limit: mostRead, state: 'waiting' })
    const waiting = new Set(items.map(({ id }) => id))
    for (const approval of items) {
      if (known.has(approval.id)) continue
      known.add(approval.id)
      emit('approval-requested', { approval: toShown(approval), elsewhere: true })
    }
    for (const id of new Set([...known, ...waiters.keys()])) {
      if (waiting.has(id)) continue
      const approval = await approvals.find(id)
      if (changing.has(id)) {
        leftOut.add(id)
        continue
      }
      if (!approval) known.delete(id)
      else if (approval.state !== 'waiting') report(approval, true)
    }
  }

  function report(approval: StoredApproval, elsewhere: boolean): void {
    const wasKnown = known.has(approval.id)
    if (approval.state !== 'waiting') {
      known.delete(approval.id)
      for (const waiter of waiters.get(approval.id) ?? []) waiter(approval)
    }
    if (!elsewhere) emit('approval-answered', { approval: toShown(approval) })
    else if (wasKnown) emit('approval-answered', { approval: toShown(approval), elsewhere })
  }

  function announce(): void {
    changes
      .announce('approvals')
      .catch((error: unknown) =>
        log.warn(
          { code: toGatewayError(error).code },
          'a change of an approval could not be announced to other instances',
        ),
      )
  }

  return {
    settled(approval, signal) {
      const { promise, resolve, reject } = Promise.withResolvers<StoredApproval>()
      if (approval.state !== 'waiting') return Promise.resolve(approval)
      const giveUp = () => reject(new GatewayError('call-cancelled', 'The caller stopped waiting for the approval'))
      const unlink = onAbort(signal, giveUp)
      const here = waiters.get(approval.id) ?? new Set()
      waiters.set(approval.id, here.add(resolve))
      const left = Math.max(0, Date.parse(approval.expiresAt) - clock.now())
      const cancelExpiry = clock.after(left + roundingMs, () => {
        expire(approval).catch((error: unknown) =>
          log.warn({ code: toGatewayError(error).code }, 'an approval could not be expired'),
        )
      })
      // The approval may have been answered since it was read.
      approvals.find(approval.id).then((now) => now && now.state !== 'waiting' && resolve(now), reject)
      return promise.finally(() => {
        cancelExpiry()
        unlink()
        here.delete(resolve)
        if (here.size === 0) waiters.delete(approval.id)
      })
    },
    waiting: (id) => waiters.get(id)?.size ?? 0,
    requested(approval) {
      known.add(approval.id)
      emit('approval-requested', { approval: toShown(approval) })
      announce()
    },
    async whileChanging(id, task) {
      changing.set(id, (changing.get(id) ?? 0) + 1)
      try {
        return await task()
      } finally {
        const left = (changing.get(id) ?? 1) - 1
        if (left > 0) changing.set(id, left)
        else {
          changing.delete(id)
          if (leftOut.delete(id) && !closed) void readChanges()
        }
      }
    },
    changed(approval) {
      report(approval, false)
      announce()
    },
    close() {
      closed = true
      cancelRead()
      stop()
    },
  }
}

/** Without the internal fields: hashes for grants, and the text of a drift, which can be long. */
function toShown(approval: Approval & Partial<StoredApproval>): Approval {
  const { definition: _definition, argumentsHash: _hash, live: _live, drift: _drift, ...shown } = approval
  return shown
}

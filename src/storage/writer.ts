import { GatewayError, toGatewayError } from '../contract/errors.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { createGroupCommit } from './group-commit.ts'
import { type CompactHow, type CompactStep, type Engine, estimateBytes, type Unit, type UnitOutcome } from './unit.ts'

export type Writer = {
  /** Resolves when the unit is durable or refused. Throws `storage-unavailable` if the database cannot be written. */
  commit(unit: Unit): Promise<UnitOutcome>
  /**
   * Does not wait. The unit is written within milliseconds, or when the database can be written again. `onUnmet` is
   * called if the unit was refused because a statement did not change the expected rows.
   */
  keep(unit: Unit, onUnmet?: () => void): void
  /** Does not wait. The unit is dropped if the database cannot be written. */
  attempt(unit: Unit): void
  query: Engine['query']
  /** Undefined if the database returns unused space itself. */
  compact(how: CompactHow): Promise<CompactStep> | undefined
  /** Throws `storage-unavailable` if no new work may be accepted. */
  assertWritable(): void
  /** Why the database cannot be written now; undefined if it can. */
  findProblem(): GatewayError | undefined
  /** Resolves when all earlier units are written, refused or failed. */
  settled(): Promise<void>
  /** Resolves when all earlier units are durable. Throws `storage-unavailable` if that is not possible. */
  flush(): Promise<void>
  /** Tries once more to write the queued units, then closes the engine. */
  close(lastUnit: Unit): Promise<void>
}

type WriterParts = {
  engine: Engine
  /** Opens another engine on the same data after the first one failed. */
  reopen(): Promise<Engine>
  /** A unit that succeeds only if the database has space and can commit. */
  probe(): Unit
  /** Why this instance must not accept work, although the database can be written. */
  findProblem?: (() => GatewayError | undefined) | undefined
  clock: Clock
  log: Log
}

/** A unit that waits until the database can be written again. */
type Kept = { readonly unit: Unit; readonly onUnmet: (() => void) | undefined }

const limits = { units: 20_000, bytes: 64 * 1024 * 1024 }
const probeEvery = 1000

/**
 * The only way to write to the database. Refuses new work while the database is unavailable, queues units that must not
 * be lost, and retries.
 */
export function createWriter({ engine: first, reopen, probe, findProblem, clock, log }: WriterParts): Writer {
  let engine = first
  let engineEnded = false
  let broken: GatewayError | undefined
  let closing = false
  let kept: Kept[] = []
  let keptBytes = 0
  let lost = 0
  let cancelProbe = () => {}
  let recovering: Promise<boolean> | undefined
  const group = createGroupCommit({ run: (units) => engine.run(units), limits, clock })
  watch(first)

  function post(unit: Unit): Promise<UnitOutcome> {
    const { promise, resolve, reject } = Promise.withResolvers<UnitOutcome>()
    group.post(unit, {
      done: resolve,
      failed(error) {
        markBroken(error)
        reject(error)
      },
    })
    return promise
  }

  function assertWritable(): void {
    if (closing) throw unavailable('The storage is closed')
    if (broken) throw unavailable(broken.message, broken)
    const problem = findProblem?.()
    if (problem) throw problem
    if (group.full()) throw unavailable('Too many writes are waiting')
  }

  async function commit(unit: Unit): Promise<UnitOutcome> {
    assertWritable()
    return post(unit)
  }

  function keep(unit: Unit, onUnmet?: () => void): void {
    // After the units that are already queued: the outcome of a call must not be written before its intent.
    if (broken || kept.length > 0 || group.full()) return enqueue({ unit, onUnmet })
    group.postLater(unit, {
      done: (outcome) => reportRefusal(outcome, onUnmet),
      failed(error) {
        markBroken(error)
        enqueue({ unit, onUnmet })
      },
    })
  }

  function enqueue(late: Kept): void {
    const bytes = estimateBytes(late.unit)
    if (kept.length >= limits.units || keptBytes + bytes > limits.bytes) {
      lost++
      if (lost === 1) log.error({ kept: kept.length }, 'outcomes are lost: too many are waiting for the database')
      return
    }
    // The queue can be full while the database works. Without a probe nothing would write this unit later.
    if (!broken && kept.length === 0) scheduleProbe()
    kept.push(late)
    keptBytes += bytes
  }

  function attempt(unit: Unit): void {
    if (broken || closing || group.full()) return
    group.postLater(unit, { done: () => {}, failed: markBroken })
  }

  function markBroken(error: GatewayError): void {
    if (broken || closing) return
    broken = error
    log.error({ reason: error.message }, 'the database cannot be written; calls are refused until it can')
    scheduleProbe()
  }

  function watch(next: Engine): void {
    engine = next
    engineEnded = false
    next.ended.then((error) => {
      engineEnded = true
      markBroken(error)
    })
  }

  function scheduleProbe(): void {
    cancelProbe()
    cancelProbe = clock.after(probeEvery, async () => {
      if (!closing && !(await recover())) scheduleProbe()
    })
  }

  function recover(): Promise<boolean> {
    recovering ??= tryToRecover().finally(() => {
      recovering = undefined
    })
    return recovering
  }

  async function tryToRecover(): Promise<boolean> {
    try {
      if (engineEnded) watch(await reopen())
      await post(probe())
    } catch (error) {
      if (broken) broken = toGatewayError(error) // report the newest reason
      return false
    }
    if (broken) log.info({ kept: kept.length, lost }, 'the database can be written again')
    broken = undefined
    const units = kept
    kept = []
    keptBytes = 0
    lost = 0
    for (const { unit, onUnmet } of units) keep(unit, onUnmet)
    return true
  }

  function reportRefusal(outcome: UnitOutcome, onUnmet?: () => void): void {
    if (outcome.kind === 'done') return
    const facts = { reason: outcome.reason, step: outcome.step }
    if (outcome.by === 'expectation' && onUnmet) return onUnmet()
    if (outcome.by === 'expectation') log.debug(facts, 'a queued write was no longer needed')
    else log.error(facts, 'a queued write was refused')
  }

  async function settled(): Promise<void> {
    // An empty unit is processed after all earlier units.
    if (!group.idle()) await post([]).catch(() => {})
  }

  async function flush(): Promise<void> {
    await settled()
    if (broken || kept.length > 0) await recover()
    await settled()
    if (broken) throw unavailable(broken.message, broken)
  }

  return {
    commit,
    keep,
    attempt,
    query: (statement) => engine.query(statement),
    compact: (how) => engine.compact?.(how),
    assertWritable,
    findProblem: () => (closing ? unavailable('The storage is closed') : (broken ?? findProblem?.())),
    settled,
    flush,
    async close(lastUnit) {
      closing = true
      cancelProbe()
      await flush().catch(() => {})
      keep(lastUnit)
      await settled()
      if (kept.length > 0) log.error({ kept: kept.length }, 'closed with outcomes that could not be written')
      await engine.close()
    },
  }
}

function unavailable(message: string, cause?: GatewayError): GatewayError {
  return new GatewayError('storage-unavailable', message, {}, { cause })
}

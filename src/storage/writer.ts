import { GatewayError, toGatewayError } from '../contract/errors.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { createGroupCommit } from './group-commit.ts'
import { type CompactHow, type CompactStep, type Engine, type Unit, type UnitOutcome, weigh } from './unit.ts'

export type Writer = {
  /** Resolves when the unit is durable or refused; throws `storage-unavailable` when the store cannot write. */
  commit(unit: Unit): Promise<UnitOutcome>
  /**
   * Does not wait: written within milliseconds, or as soon as the store can write again. `onUnmet` is called when the
   * unit was refused because a statement did not change the rows it expects.
   */
  keep(unit: Unit, onUnmet?: () => void): void
  /** Does not wait and is not worth keeping: lost if the store cannot write. */
  attempt(unit: Unit): void
  query: Engine['query']
  /** Undefined where the database gives unused room back itself. */
  compact(how: CompactHow): Promise<CompactStep> | undefined
  /** Throws `storage-unavailable` when nothing new may be promised. */
  assertWritable(): void
  /** Why nothing can be written now. */
  findProblem(): GatewayError | undefined
  /** Resolves when all that was posted before is answered, whatever the answer. */
  settled(): Promise<void>
  /** Resolves when all that was posted or kept before is durable; throws `storage-unavailable` if that cannot be. */
  flush(): Promise<void>
  /** The last attempt for what was kept; then the engine closes. */
  close(lastUnit: Unit): Promise<void>
}

type WriterParts = {
  engine: Engine
  /** Another engine on the same data, for when the first one died. */
  reopen(): Promise<Engine>
  /** A unit that succeeds only if the store has room and can commit. */
  probe(): Unit
  /** Why this instance may promise nothing, although the store can write. */
  findProblem?: (() => GatewayError | undefined) | undefined
  clock: Clock
  log: Log
}

/** A unit that waits until the store can write again. */
type Kept = { readonly unit: Unit; readonly onUnmet: (() => void) | undefined }

const limits = { units: 20_000, bytes: 64 * 1024 * 1024 }
const probeEvery = 1000

/** The one way into the database: refuses when it is broken, keeps what must not be lost, and heals by itself. */
export function createWriter({ engine: first, reopen, probe, findProblem, clock, log }: WriterParts): Writer {
  let engine = first
  let engineEnded = false
  let broken: GatewayError | undefined
  let closing = false
  let kept: Kept[] = []
  let keptBytes = 0
  let lost = 0
  let cancelProbe = () => {}
  let healing: Promise<boolean> | undefined
  const group = createGroupCommit({ run: (units) => engine.run(units), limits, clock })
  watch(first)

  function post(unit: Unit): Promise<UnitOutcome> {
    const { promise, resolve, reject } = Promise.withResolvers<UnitOutcome>()
    group.post(unit, {
      done: resolve,
      failed(error) {
        breakDown(error)
        reject(error)
      },
    })
    return promise
  }

  function assertWritable(): void {
    if (closing) throw unavailable('The store is closed')
    if (broken) throw unavailable(broken.message, broken)
    const problem = findProblem?.()
    if (problem) throw problem
    if (group.full()) throw unavailable('Too much is waiting to be written')
  }

  async function commit(unit: Unit): Promise<UnitOutcome> {
    assertWritable()
    return post(unit)
  }

  function keep(unit: Unit, onUnmet?: () => void): void {
    // Behind those that wait already: a call's end must not overtake its beginning.
    if (broken || kept.length > 0 || group.full()) return putAside({ unit, onUnmet })
    group.postPatiently(unit, {
      done: (outcome) => reportRefusal(outcome, onUnmet),
      failed(error) {
        breakDown(error)
        putAside({ unit, onUnmet })
      },
    })
  }

  function putAside(late: Kept): void {
    const bytes = weigh(late.unit)
    if (kept.length >= limits.units || keptBytes + bytes > limits.bytes) {
      lost++
      if (lost === 1) log.error({ kept: kept.length }, 'Outcomes are lost: too many wait for the store')
      return
    }
    // The queue is full while the store is well: nothing else would come back for what waits here.
    if (!broken && kept.length === 0) scheduleProbe()
    kept.push(late)
    keptBytes += bytes
  }

  function attempt(unit: Unit): void {
    if (broken || closing || group.full()) return
    group.postPatiently(unit, { done: () => {}, failed: breakDown })
  }

  function breakDown(error: GatewayError): void {
    if (broken || closing) return
    broken = error
    log.error({ reason: error.message }, 'The store cannot write: calls are refused until it can')
    scheduleProbe()
  }

  function watch(next: Engine): void {
    engine = next
    engineEnded = false
    next.ended.then((error) => {
      engineEnded = true
      breakDown(error)
    })
  }

  function scheduleProbe(): void {
    cancelProbe()
    cancelProbe = clock.after(probeEvery, async () => {
      if (!closing && !(await heal())) scheduleProbe()
    })
  }

  function heal(): Promise<boolean> {
    healing ??= tryToHeal().finally(() => {
      healing = undefined
    })
    return healing
  }

  async function tryToHeal(): Promise<boolean> {
    try {
      if (engineEnded) watch(await reopen())
      await post(probe())
    } catch (error) {
      if (broken) broken = toGatewayError(error) // what people are told is the newest reason
      return false
    }
    if (broken) log.info({ kept: kept.length, lost }, 'The store can write again')
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
    if (outcome.by === 'expectation') log.debug(facts, 'A unit was not needed any more')
    else log.error(facts, 'A unit was refused')
  }

  async function settled(): Promise<void> {
    // An empty unit stands behind all others, so its answer comes after theirs.
    if (!group.idle()) await post([]).catch(() => {})
  }

  async function flush(): Promise<void> {
    await settled()
    if (broken || kept.length > 0) await heal()
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
    findProblem: () => (closing ? unavailable('The store is closed') : (broken ?? findProblem?.())),
    settled,
    flush,
    async close(lastUnit) {
      closing = true
      cancelProbe()
      await flush().catch(() => {})
      keep(lastUnit)
      await settled()
      if (kept.length > 0) log.error({ kept: kept.length }, 'Closed with outcomes that could not be written')
      await engine.close()
    },
  }
}

function unavailable(message: string, cause?: GatewayError): GatewayError {
  return new GatewayError('storage-unavailable', message, {}, { cause })
}

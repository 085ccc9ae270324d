import { type GatewayError, toGatewayError } from '../contract/errors.ts'
import type { Clock } from '../lib/clock.ts'
import { estimateBytes, type Unit, type UnitOutcome } from './unit.ts'

/** Called once per unit with its outcome, or with the error that failed its whole batch. */
export type Delivery = { done(outcome: UnitOutcome): void; failed(error: GatewayError): void }

export type GroupCommit = {
  /** Commits as soon as possible. */
  post(unit: Unit, delivery: Delivery): void
  /** For units that nobody waits for. Committed with the next batch, or after `patience` milliseconds. */
  postLater(unit: Unit, delivery: Delivery): void
  /** True when a limit is reached and no more units should be posted. */
  full(): boolean
  idle(): boolean
}

type GroupCommitParts = {
  run(units: readonly Unit[]): Promise<readonly UnitOutcome[]>
  limits: { readonly units: number; readonly bytes: number }
  clock: Pick<Clock, 'after'>
}

/** Outcomes are committed together with the intents of the next calls. That halves the number of commits. */
const patience = 5

type Waiting = { readonly unit: Unit; readonly bytes: number; readonly delivery: Delivery }

/**
 * Groups units into shared commits: the units of one event loop turn, then all units that arrived during the last
 * commit.
 */
export function createGroupCommit({ run, limits, clock }: GroupCommitParts): GroupCommit {
  let gathered: Waiting[] = []
  let urgent = false
  let draining = false
  let cancelPatience: (() => void) | undefined
  let units = 0
  let bytes = 0

  return {
    post(unit, delivery) {
      gather(unit, delivery)
      commitSoon()
    },
    postLater(unit, delivery) {
      gather(unit, delivery)
      if (!urgent && !draining) cancelPatience ??= clock.after(patience, commitSoon)
    },
    full: () => units >= limits.units || bytes >= limits.bytes,
    idle: () => units === 0,
  }

  function gather(unit: Unit, delivery: Delivery): void {
    const waiting = { unit, bytes: estimateBytes(unit), delivery }
    gathered.push(waiting)
    units++
    bytes += waiting.bytes
  }

  function commitSoon(): void {
    cancelPatience?.()
    cancelPatience = undefined
    if (urgent) return
    urgent = true
    if (!draining) setImmediate(drain)
  }

  async function drain(): Promise<void> {
    draining = true
    while (urgent) {
      urgent = false
      await commit(take())
    }
    draining = false
    if (gathered.length > 0) cancelPatience ??= clock.after(patience, commitSoon)
  }

  async function commit(batch: readonly Waiting[]): Promise<void> {
    try {
      const outcomes = await run(batch.map(({ unit }) => unit))
      deliver(batch, outcomes)
    } catch (error) {
      // Units that arrived during the commit may depend on the failed ones, so they fail too. That keeps the order.
      const failure = toGatewayError(error)
      const failed = [...batch, ...take()]
      urgent = false
      leave(failed)
      for (const { delivery } of failed) delivery.failed(failure)
    }
  }

  function take(): Waiting[] {
    const batch = gathered
    gathered = []
    return batch
  }

  function deliver(batch: readonly Waiting[], outcomes: readonly UnitOutcome[]): void {
    leave(batch)
    for (const [index, { delivery }] of batch.entries()) {
      const outcome = outcomes[index]
      if (outcome) delivery.done(outcome)
    }
  }

  function leave(answered: readonly Waiting[]): void {
    units -= answered.length
    for (const waiting of answered) bytes -= waiting.bytes
  }
}

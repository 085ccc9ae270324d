import { type GatewayError, toGatewayError } from '../contract/errors.ts'
import type { Clock } from '../lib/clock.ts'
import { type Unit, type UnitOutcome, weigh } from './unit.ts'

/** Hears once what became of a unit: its outcome, or why its whole batch failed. */
export type Delivery = { done(outcome: UnitOutcome): void; failed(error: GatewayError): void }

export type GroupCommit = {
  /** Commits as soon as it can. */
  post(unit: Unit, delivery: Delivery): void
  /** Nobody waits for it: goes with the next commit, or within `patience` if there is none. */
  postPatiently(unit: Unit, delivery: Delivery): void
  /** The bound is reached: nothing more should be posted. */
  full(): boolean
  idle(): boolean
}

type GroupCommitParts = {
  run(units: readonly Unit[]): Promise<readonly UnitOutcome[]>
  limits: { readonly units: number; readonly bytes: number }
  clock: Pick<Clock, 'after'>
}

/** The end of a call rides along with the next call's beginning: half as many commits, and none that a beginning waits behind. */
const patience = 5

type Waiting = { readonly unit: Unit; readonly bytes: number; readonly delivery: Delivery }

/** Many units share a commit: those of one turn of the loop, then all that gathered while the last one was on its way. */
export function createGroupCommit({ run, limits, clock }: GroupCommitParts): GroupCommit {
  let gathered: Waiting[] = []
  let hurried = false
  let draining = false
  let cancelPatience: (() => void) | undefined
  let units = 0
  let bytes = 0

  return {
    post(unit, delivery) {
      gather(unit, delivery)
      hurry()
    },
    postPatiently(unit, delivery) {
      gather(unit, delivery)
      if (!hurried && !draining) cancelPatience ??= clock.after(patience, hurry)
    },
    full: () => units >= limits.units || bytes >= limits.bytes,
    idle: () => units === 0,
  }

  function gather(unit: Unit, delivery: Delivery): void {
    const waiting = { unit, bytes: weigh(unit), delivery }
    gathered.push(waiting)
    units++
    bytes += waiting.bytes
  }

  function hurry(): void {
    cancelPatience?.()
    cancelPatience = undefined
    if (hurried) return
    hurried = true
    if (!draining) setImmediate(drain)
  }

  async function drain(): Promise<void> {
    draining = true
    while (hurried) {
      hurried = false
      await commit(take())
    }
    draining = false
    if (gathered.length > 0) cancelPatience ??= clock.after(patience, hurry)
  }

  async function commit(batch: readonly Waiting[]): Promise<void> {
    try {
      const outcomes = await run(batch.map(({ unit }) => unit))
      deliver(batch, outcomes)
    } catch (error) {
      // Those that gathered meanwhile may build on the lost ones, so they fail with them and keep their order.
      const failure = toGatewayError(error)
      const failed = [...batch, ...take()]
      hurried = false
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

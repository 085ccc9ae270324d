import { type GatewayError, toGatewayError } from '../contract/errors.ts'
import { type Unit, type UnitOutcome, weigh } from './unit.ts'

/** Hears once what became of a unit: its outcome, or why its whole batch failed. */
export type Delivery = { done(outcome: UnitOutcome): void; failed(error: GatewayError): void }

export type GroupCommit = {
  post(unit: Unit, delivery: Delivery): void
  /** The bound is reached: nothing more should be posted. */
  full(): boolean
  idle(): boolean
}

type GroupCommitParts = {
  run(units: readonly Unit[]): Promise<readonly UnitOutcome[]>
  limits: { readonly units: number; readonly bytes: number }
}

type Waiting = { readonly unit: Unit; readonly bytes: number; readonly delivery: Delivery }

/** Many units share a commit: those of one turn of the loop, then all that gathered while the last one was on its way. */
export function createGroupCommit({ run, limits }: GroupCommitParts): GroupCommit {
  let gathered: Waiting[] = []
  let draining = false
  let units = 0
  let bytes = 0

  return {
    post(unit, delivery) {
      const waiting = { unit, bytes: weigh(unit), delivery }
      gathered.push(waiting)
      units++
      bytes += waiting.bytes
      if (draining) return
      draining = true
      setImmediate(drain)
    },
    full: () => units >= limits.units || bytes >= limits.bytes,
    idle: () => !draining,
  }

  async function drain(): Promise<void> {
    while (gathered.length > 0) {
      const batch = take()
      try {
        const outcomes = await run(batch.map(({ unit }) => unit))
        deliver(batch, outcomes)
      } catch (error) {
        // Those that gathered meanwhile may build on the lost ones, so they fail with them and keep their order.
        const failure = toGatewayError(error)
        const failed = [...batch, ...take()]
        leave(failed)
        for (const { delivery } of failed) delivery.failed(failure)
      }
    }
    draining = false
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

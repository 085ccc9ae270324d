import type { AuditKind } from '../contract/audit.ts'
import type { GatewayError } from '../contract/errors.ts'

/** One SQL statement; `expect` is the number of rows it must change for its unit to stand. */
export type Statement = {
  readonly sql: string
  readonly parameters: readonly unknown[]
  readonly expect?: number
}

/** An entry of the record before it has its place in it; the database's own side gives it a sequence. */
export type NewEntry = {
  readonly at: number
  readonly kind: AuditKind
  readonly call: string | null
  readonly principal: string
  readonly subject: string
  /** JSON. */
  readonly body: string
}

/** Steps that happen whole or not at all. */
export type Unit = readonly (Statement | { readonly entry: NewEntry })[]

/** What became of a unit: the rows changed and returned by its last statement, or the step that refused it. */
export type UnitOutcome =
  | { readonly kind: 'done'; readonly changes: number; readonly rows: readonly unknown[] }
  | { readonly kind: 'refused'; readonly step: number; readonly by: 'expectation' | 'error'; readonly reason: string }

/** Only measures, gives a few pages back, writes the whole file again, or cuts off the log that is left of it. */
export type CompactHow = 'look' | 'step' | 'whole' | 'trim'

/** Afterwards: bytes on disk, how many pages steps could give back, and whether the file is ready for steps. */
export type CompactStep = { readonly size: number; readonly left: number; readonly stepwise: boolean }

/** A database that commits batches of units. SQLite's lives in a worker thread. */
export type Engine = {
  /** One durable commit for all units; throws when none of them stands. */
  run(units: readonly Unit[]): Promise<readonly UnitOutcome[]>
  query(statement: Statement): Promise<readonly unknown[]>
  /** Gives unused room back to the disk. Only where the database does not do that itself. */
  compact?: (how: CompactHow) => Promise<CompactStep>
  /** Resolves when it has ended, asked or not: nothing is answered any more. */
  readonly ended: Promise<GatewayError>
  close(): Promise<void>
}

/** Roughly what a unit weighs while it waits: enough to bound a queue by. */
export function weigh(unit: Unit): number {
  let bytes = 0
  for (const step of unit) {
    bytes += 200
    if ('entry' in step) bytes += step.entry.body.length
    else for (const value of step.parameters) bytes += typeof value === 'string' ? value.length : 8
  }
  return bytes
}

import type { AuditKind } from '../contract/audit.ts'
import type { GatewayError } from '../contract/errors.ts'

/** One SQL statement. `expect` is the number of rows that it must change, otherwise its unit is refused. */
export type Statement = {
  readonly sql: string
  readonly parameters: readonly unknown[]
  readonly expect?: number
}

/** An audit entry without a sequence number. The database engine assigns the number. */
export type NewEntry = {
  readonly at: number
  readonly kind: AuditKind
  readonly call: string | null
  readonly principal: string
  readonly subject: string
  /** JSON. */
  readonly body: string
}

/** Steps that are written all together or not at all. */
export type Unit = readonly (Statement | { readonly entry: NewEntry })[]

/** The rows changed and returned by the last statement of a unit, or the step that refused the unit. */
export type UnitOutcome =
  | { readonly kind: 'done'; readonly changes: number; readonly rows: readonly unknown[] }
  | { readonly kind: 'refused'; readonly step: number; readonly by: 'expectation' | 'error'; readonly reason: string }

/** `look`: only measures. `step`: returns a few pages. `whole`: rewrites the whole file. `trim`: truncates the WAL. */
export type CompactHow = 'look' | 'step' | 'whole' | 'trim'

/** The state after a step: bytes on disk, the number of free pages, and whether the file supports small steps. */
export type CompactStep = { readonly size: number; readonly left: number; readonly stepwise: boolean }

/** A database that commits batches of units. SQLite runs in a worker thread. */
export type Engine = {
  /** Commits all units durably in one commit. Throws if the whole batch failed. */
  run(units: readonly Unit[]): Promise<readonly UnitOutcome[]>
  query(statement: Statement): Promise<readonly unknown[]>
  /** Returns unused space to the disk. Not set if the database does that itself. */
  compact?: (how: CompactHow) => Promise<CompactStep>
  /** Resolves when the engine has ended, regularly or not. Later requests fail. */
  readonly ended: Promise<GatewayError>
  close(): Promise<void>
}

/** The approximate memory of a waiting unit, used to limit the queue. */
export function estimateBytes(unit: Unit): number {
  let bytes = 0
  for (const step of unit) {
    bytes += 200
    if ('entry' in step) bytes += step.entry.body.length
    else for (const value of step.parameters) bytes += typeof value === 'string' ? value.length : 8
  }
  return bytes
}

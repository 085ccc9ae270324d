import type { ErrorCode } from '../../contract/errors.ts'
import type { CompactHow, CompactStep, NewEntry, Statement, Unit, UnitOutcome } from '../unit.ts'

export type SqliteSettings = {
  /** Absolute path of the data folder. */
  readonly folder: string
  /** The instance whose entries this worker numbers. */
  readonly instance: string
  /** The key that chains the entries. */
  readonly auditKey: Uint8Array
  /** The maximum number of 4 KiB pages of the database. */
  readonly maxPages?: number
  /** The time of opening, for the migrations table. */
  readonly now: number
}

export type SqliteRequest =
  | { readonly kind: 'run'; readonly id: number; readonly units: PackedUnits }
  | { readonly kind: 'query'; readonly id: number; readonly statement: Statement }
  | { readonly kind: 'compact'; readonly id: number; readonly how: CompactHow }
  | { readonly kind: 'close' }

export type SqliteReply =
  | { readonly kind: 'opened' }
  | { readonly kind: 'not-opened'; readonly code: ErrorCode; readonly message: string }
  | { readonly kind: 'ran'; readonly id: number; readonly outcomes: PackedOutcomes }
  | { readonly kind: 'rows'; readonly id: number; readonly rows: readonly unknown[] }
  | { readonly kind: 'compacted'; readonly id: number; readonly step: CompactStep }
  | { readonly kind: 'failed'; readonly id: number; readonly message: string }

/**
 * Units as one flat list, because sending many objects between threads is slow. For every unit: the number of steps.
 * For every step: the number of its SQL text, the expected number of changes, the number of parameters, and the
 * parameters; or `entryMark` and the fields of an entry.
 */
export type PackedUnits = { readonly texts: readonly string[]; readonly values: readonly unknown[] }

/** Most outcomes are only a number of changed rows. */
export type PackedOutcomes = readonly (number | UnitOutcome)[]

const entryMark = -1
const expectsNothing = -1
const entryFields = 6

export function packUnits(units: readonly Unit[]): PackedUnits {
  const numbers = new Map<string, number>()
  const values: unknown[] = []
  for (const unit of units) {
    values.push(unit.length)
    for (const step of unit) {
      if ('entry' in step) {
        const { at, kind, call, principal, subject, body } = step.entry
        values.push(entryMark, at, kind, call, principal, subject, body)
        continue
      }
      const number = numbers.get(step.sql) ?? numbers.size
      numbers.set(step.sql, number)
      values.push(number, step.expect ?? expectsNothing, step.parameters.length)
      for (const parameter of step.parameters) values.push(parameter)
    }
  }
  return { texts: [...numbers.keys()], values }
}

export function unpackUnits({ texts, values }: PackedUnits): Unit[] {
  const units: Unit[] = []
  let at = 0
  while (at < values.length) {
    const unit: (Statement | { entry: NewEntry })[] = []
    for (let steps = Number(values[at++]); steps > 0; steps--) unit.push(unpackStep())
    units.push(unit)
  }
  return units

  function unpackStep(): Statement | { entry: NewEntry } {
    const mark = Number(values[at++])
    if (mark === entryMark) {
      at += entryFields
      return { entry: toEntry(values, at - entryFields) }
    }
    const expect = Number(values[at++])
    const count = Number(values[at++])
    const parameters = values.slice(at, at + count)
    at += count
    return { sql: texts[mark] ?? '', parameters, ...(expect !== expectsNothing && { expect }) }
  }
}

/** The cast is safe: the values come from `packUnits`. */
function toEntry(values: readonly unknown[], from: number): NewEntry {
  const [at, kind, call, principal, subject, body] = values.slice(from, from + entryFields)
  return { at, kind, call, principal, subject, body } as NewEntry
}

export function packOutcomes(outcomes: readonly UnitOutcome[]): PackedOutcomes {
  return outcomes.map((outcome) => (outcome.kind === 'done' && outcome.rows.length === 0 ? outcome.changes : outcome))
}

export function unpackOutcomes(packed: PackedOutcomes): UnitOutcome[] {
  return packed.map((outcome) => (typeof outcome === 'number' ? toDone(outcome) : outcome))
}

function toDone(changes: number): UnitOutcome {
  return { kind: 'done', changes, rows: [] }
}

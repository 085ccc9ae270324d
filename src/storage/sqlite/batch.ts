import Sqlite from 'better-sqlite3'
import { crashPoint } from '../../lib/crash-point.ts'
import type { EntryPosition } from '../entries.ts'
import type { Statement, Unit, UnitOutcome } from '../unit.ts'
import type { Entries } from './entries.ts'
import type { Connection } from './file.ts'

type Prepared = Sqlite.Statement<unknown[]>
type Done = Extract<UnitOutcome, { kind: 'done' }>

const nothing: Done = { kind: 'done', changes: 0, rows: [] }

/** Statements are few and repeated; a bound keeps lists of changing length from piling up. */
const mostPrepared = 256

/** What says that the store is broken, not that one unit asked for something impossible. */
const brokenStore = /^SQLITE_(FULL|IOERR|CORRUPT|NOTADB|READONLY|CANTOPEN|NOMEM|BUSY|LOCKED|PROTOCOL|INTERRUPT|PERM)/

export type Batches = {
  /** One transaction for all units, of which each stands or falls by itself; throws when it failed as a whole. */
  run(units: readonly Unit[]): UnitOutcome[]
  query(statement: Statement): unknown[]
}

export function createBatches(connection: Connection, entries: Entries): Batches {
  const prepared = new Map<string, Prepared>()
  const begin = connection.prepare('begin immediate')
  const commit = connection.prepare('commit')
  const rollback = connection.prepare('rollback')
  const savepoint = connection.prepare('savepoint unit')
  const release = connection.prepare('release unit')
  const rollbackUnit = connection.prepare('rollback to unit')

  return {
    run(units) {
      const before = entries.position()
      try {
        begin.run()
        const outcomes = runPlainly(units) ?? runEach(units, before)
        crashPoint('a batch is about to commit')
        commit.run()
        crashPoint('a batch has committed')
        return outcomes
      } catch (error) {
        entries.rewind(before)
        if (connection.inTransaction) rollback.run()
        throw error
      }
    },
    query: ({ sql, parameters }) => prepare(sql).all(...parameters),
  }

  /** Nearly always no unit is refused, and then none needs a savepoint; undefined when one is. */
  function runPlainly(units: readonly Unit[]): UnitOutcome[] | undefined {
    const outcomes: UnitOutcome[] = []
    for (const unit of units) {
      const outcome = runSteps(unit)
      if (outcome.kind === 'refused') return undefined
      outcomes.push(outcome)
    }
    return outcomes
  }

  /** From the beginning again, in a way that lets each be taken back by itself. */
  function runEach(units: readonly Unit[], before: EntryPosition): UnitOutcome[] {
    rollback.run()
    entries.rewind(before)
    begin.run()
    return units.map(runUnit)
  }

  function runUnit(unit: Unit): UnitOutcome {
    savepoint.run()
    const before = entries.position()
    const outcome = runSteps(unit)
    if (outcome.kind === 'refused') {
      rollbackUnit.run()
      entries.rewind(before)
    }
    release.run()
    return outcome
  }

  function runSteps(unit: Unit): UnitOutcome {
    let last = nothing
    for (const [step, action] of unit.entries()) {
      try {
        if ('entry' in action) {
          entries.append(action.entry)
          continue
        }
        last = runStatement(action)
      } catch (error) {
        if (isBrokenStore(error)) throw error
        return { kind: 'refused', step, by: 'error', reason: error instanceof Error ? error.message : String(error) }
      }
      if (action.expect !== undefined && action.expect !== last.changes) {
        const reason = `${last.changes} rows changed instead of ${action.expect}`
        return { kind: 'refused', step, by: 'expectation', reason }
      }
    }
    return last
  }

  function runStatement({ sql, parameters }: Statement): Done {
    const statement = prepare(sql)
    if (!statement.reader) return { kind: 'done', changes: statement.run(...parameters).changes, rows: [] }
    const rows = statement.all(...parameters)
    return { kind: 'done', changes: rows.length, rows }
  }

  function prepare(sql: string): Prepared {
    const known = prepared.get(sql)
    if (known) return known
    const [oldest] = prepared.keys()
    if (oldest !== undefined && prepared.size >= mostPrepared) prepared.delete(oldest)
    const statement = connection.prepare<unknown[]>(sql)
    prepared.set(sql, statement)
    return statement
  }

  /** SQLite ends the whole transaction by itself on some errors: then no unit of it stands. */
  function isBrokenStore(error: unknown): boolean {
    if (!connection.inTransaction) return true
    return error instanceof Sqlite.SqliteError && brokenStore.test(error.code)
  }
}

import Sqlite from 'better-sqlite3'
import { crashPoint } from '../../lib/crash-point.ts'
import type { EntryPosition } from '../entries.ts'
import type { Statement, Unit, UnitOutcome } from '../unit.ts'
import type { Entries } from './entries.ts'
import type { Connection } from './file.ts'

type Prepared = Sqlite.Statement<unknown[]>
type Done = Extract<UnitOutcome, { kind: 'done' }>

const nothing: Done = { kind: 'done', changes: 0, rows: [] }

/** Most statements repeat, so they are prepared once. The limit is for statements with lists of varying length. */
const mostPrepared = 256

/** Error codes that mean the database failed, not that one unit was invalid. */
const brokenStore = /^SQLITE_(FULL|IOERR|CORRUPT|NOTADB|READONLY|CANTOPEN|NOMEM|BUSY|LOCKED|PROTOCOL|INTERRUPT|PERM)/

export type Batches = {
  /** Runs all units in one transaction. A refused unit does not affect the other units. Throws if the whole batch failed. */
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

  /** Runs without savepoints, because units are rarely refused. Returns undefined if a unit is refused. */
  function runPlainly(units: readonly Unit[]): UnitOutcome[] | undefined {
    const outcomes: UnitOutcome[] = []
    for (const unit of units) {
      const outcome = runSteps(unit)
      if (outcome.kind === 'refused') return undefined
      outcomes.push(outcome)
    }
    return outcomes
  }

  /** Starts again with a savepoint for each unit, so that a refused unit can be rolled back alone. */
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

  /** On some errors SQLite rolls back the whole transaction: then all units have failed. */
  function isBrokenStore(error: unknown): boolean {
    if (!connection.inTransaction) return true
    return error instanceof Sqlite.SqliteError && brokenStore.test(error.code)
  }
}

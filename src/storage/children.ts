import { type ChildrenTable, type Database, toStatement } from './database.ts'
import type { Writer } from './writer.ts'

export type NewChild = {
  readonly pid: number
  /** When the system says the process began: tells it from another with the same number. */
  readonly startTime: string
  readonly connection: string
}

export type ChildRow = NewChild & {
  readonly instance: string
  readonly bootId: string
  readonly startedAt: number
}

export type ChildStore = {
  add(child: NewChild): Promise<void>
  /** The child of this instance with that process id has ended. */
  remove(pid: number): void
  ofDeadInstances(): Promise<ChildRow[]>
  forget(rows: readonly ChildRow[]): Promise<void>
  /** Instances that ended without saying so: a child of theirs may have been started and not yet recorded. */
  deadInstances(): Promise<string[]>
}

type ChildStoreParts = {
  database: Database
  writer: Writer
  instance: string
  bootId: string
  now(): number
}

export function createChildStore({ database, writer, instance, bootId, now }: ChildStoreParts): ChildStore {
  return {
    async add({ pid, startTime, connection }) {
      const rest = { boot_id: bootId, start_time: startTime, connection, started_at: now() }
      await database
        .insertInto('children')
        .values({ pid, instance, ...rest })
        // The system gives numbers again, and the end of their last owner may not be written yet.
        .onConflict((conflict) => conflict.columns(['instance', 'pid']).doUpdateSet(rest))
        .execute()
    },
    remove: (pid) => writer.keep([toStatement(ofOne(instance, pid))]),
    async deadInstances() {
      const rows = await database
        .selectFrom('instances')
        .select('id')
        .where('id', '!=', instance)
        .where('ended_at', 'is', null)
        .execute()
      return rows.map(({ id }) => id)
    },
    async ofDeadInstances() {
      const rows = await database.selectFrom('children').selectAll().where('instance', '!=', instance).execute()
      return rows.map(toChildRow)
    },
    async forget(rows) {
      await writer.commit(rows.map((row) => toStatement(ofOne(row.instance, row.pid))))
    },
  }

  function ofOne(owner: string, pid: number) {
    return database.deleteFrom('children').where('instance', '=', owner).where('pid', '=', pid)
  }
}

function toChildRow(row: ChildrenTable): ChildRow {
  return {
    pid: row.pid,
    instance: row.instance,
    bootId: row.boot_id,
    startTime: row.start_time,
    connection: row.connection,
    startedAt: row.started_at,
  }
}

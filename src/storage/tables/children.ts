import { hostname } from 'node:os'
import { type ChildrenTable, type Database, toStatement } from '../database.ts'
import type { Writer } from '../writer.ts'
import type { InstanceStore } from './instances.ts'

export type NewChild = {
  readonly pid: number
  /** The start time of the process from the system, because process ids are reused. */
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
  /** Call it when the child of this instance with that process id has ended. */
  remove(pid: number): void
  ofDeadInstances(): Promise<ChildRow[]>
  forget(rows: readonly ChildRow[]): Promise<void>
  /**
   * Instances that ended without a regular stop and whose processes are visible from here. A child of such an instance
   * may have been started before it was recorded.
   */
  deadInstances(): Promise<string[]>
}

type ChildStoreParts = {
  database: Database
  writer: Writer
  instances: Pick<InstanceStore, 'dead'>
  instance: string
  bootId: string
  now(): number
}

export function createChildStore({ database, writer, instances, instance, bootId, now }: ChildStoreParts): ChildStore {
  return {
    async add({ pid, startTime, connection }) {
      const rest = { boot_id: bootId, start_time: startTime, connection, started_at: now() }
      await database
        .insertInto('children')
        .values({ pid, instance, ...rest })
        // The system reuses process ids, and the removal of the earlier child may not be written yet.
        .onConflict((conflict) => conflict.columns(['instance', 'pid']).doUpdateSet(rest))
        .execute()
    },
    remove: (pid) => writer.keep([toStatement(ofOne(instance, pid))]),
    async deadInstances() {
      return (await instances.dead()).filter(({ visible }) => visible).map(({ id }) => id)
    },
    async ofDeadInstances() {
      const dead = (await instances.dead()).map(({ id }) => id)
      if (dead.length === 0) return []
      const rows = await database
        .selectFrom('children')
        .innerJoin('instances', 'instances.id', 'children.instance')
        .selectAll('children')
        .where('instances.id', 'in', dead)
        // Children on another machine are handled by a gateway there.
        .where(({ eb, or }) => or([eb('children.boot_id', '=', bootId), eb('instances.host', '=', hostname())]))
        .execute()
      return rows.map(toChildRow)
    },
    async forget(rows) {
      if (rows.length > 0) await writer.commit(rows.map((row) => toStatement(ofOne(row.instance, row.pid))))
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

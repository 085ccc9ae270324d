import { readFileSync } from 'node:fs'
import { hostname, uptime } from 'node:os'
import { type Database, type InstancesTable, toStatement } from './database.ts'
import type { Statement } from './unit.ts'

export type InstanceStore = {
  start(at: number): Statement
  end(at: number): Statement
  /** Others that are not alive and left something: no end, calls without an end, child processes, or deliveries under way. */
  dead(): Promise<string[]>
  endDead(dead: readonly string[], at: number): Statement
}

/** With SQLite one instance lives at a time, the one that has the lock: all others are dead. */
export type FindLiving = (candidates: readonly InstancesTable[]) => Promise<ReadonlySet<string>>

type InstanceStoreParts = { database: Database; instance: string; bootId: string; findLiving?: FindLiving | undefined }

export function createInstanceStore({ database, instance, bootId, findLiving }: InstanceStoreParts): InstanceStore {
  async function dead(): Promise<string[]> {
    const left = await database
      .selectFrom('instances')
      .selectAll()
      .where('id', '!=', instance)
      .where(({ eb, or, exists, selectFrom }) =>
        or([
          eb('ended_at', 'is', null),
          exists(
            selectFrom('calls')
              .select('calls.id')
              .whereRef('calls.instance', '=', 'instances.id')
              .where('calls.ended_at', 'is', null),
          ),
          exists(selectFrom('children').select('pid').whereRef('children.instance', '=', 'instances.id')),
          exists(selectFrom('deliveries').select('deliveries.id').whereRef('deliveries.instance', '=', 'instances.id')),
        ]),
      )
      .execute()
    const living = (await findLiving?.(left.filter(({ ended_at }) => ended_at === null))) ?? new Set()
    return left.map(({ id }) => id).filter((id) => !living.has(id))
  }

  return {
    dead,
    start: (at) =>
      toStatement(
        database.insertInto('instances').values({
          id: instance,
          started_at: at,
          ended_at: null,
          pid: process.pid,
          boot_id: bootId,
          host: hostname(),
          renewed_at: null,
        }),
        1,
      ),
    end: (at) => toStatement(database.updateTable('instances').set({ ended_at: at }).where('id', '=', instance)),
    endDead: (ids, at) =>
      toStatement(
        database.updateTable('instances').set({ ended_at: at }).where('id', 'in', ids).where('ended_at', 'is', null),
      ),
  }
}

/** A process id means something only until the next boot. */
export function readBootId(now: number): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    // Elsewhere the time of boot, in minutes, because clock and uptime drift a little against each other.
    return `booted-${Math.round((now / 1000 - uptime()) / 60)}`
  }
}

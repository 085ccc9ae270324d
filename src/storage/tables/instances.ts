import { readFileSync } from 'node:fs'
import { hostname, uptime } from 'node:os'
import { type ProcessMark, parseMark, toMarkText } from '../../lib/processes.ts'
import { type Database, type InstancesTable, toStatement } from '../database.ts'
import type { Statement } from '../unit.ts'

export type InstanceStore = {
  start(at: number): Statement
  end(at: number): Statement
  /** Dead instances that left something: no end, calls without an outcome, child processes, config changes or deliveries. */
  dead(): Promise<DeadInstance[]>
  endDead(dead: readonly string[], at: number): Statement
}

export type DeadInstance = {
  readonly id: string
  /** Whether processes of that instance are visible from here, so that its child processes can be ended. */
  readonly visible: boolean
}

/** Returns the ids that are alive. Not needed for SQLite: only one instance can hold the lock, so all others are dead. */
export type FindLiving = (candidates: readonly InstancesTable[]) => Promise<ReadonlySet<string>>

type InstanceStoreParts = {
  database: Database
  instance: string
  bootId: string
  mark: ProcessMark | undefined
  findLiving?: FindLiving | undefined
}

export function createInstanceStore(parts: InstanceStoreParts): InstanceStore {
  const { database, instance, bootId, mark, findLiving } = parts
  async function dead(): Promise<DeadInstance[]> {
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
          exists(selectFrom('config_changes').select('id').whereRef('config_changes.instance', '=', 'instances.id')),
          exists(selectFrom('deliveries').select('deliveries.id').whereRef('deliveries.instance', '=', 'instances.id')),
        ]),
      )
      .execute()
    const living = (await findLiving?.(left)) ?? new Set()
    return left.filter(({ id }) => !living.has(id)).map((row) => ({ id: row.id, visible: isVisible(row) }))
  }

  function isVisible({ process, boot_id }: InstancesTable): boolean {
    const theirs = parseMark(process)
    return theirs === undefined || (theirs.namespace === mark?.namespace && boot_id === bootId)
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
          process: mark ? toMarkText(mark) : null,
        }),
        1,
      ),
    // The mark is cleared: the process may continue after its gateway was closed, so it no longer shows whether the
    // instance is alive.
    end: (at) =>
      toStatement(database.updateTable('instances').set({ ended_at: at, process: null }).where('id', '=', instance)),
    endDead: (ids, at) =>
      toStatement(
        database.updateTable('instances').set({ ended_at: at }).where('id', 'in', ids).where('ended_at', 'is', null),
      ),
  }
}

/** Process ids are valid only until the next boot. */
export function readBootId(now: number): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    // Without /proc: the boot time, in minutes, because clock and uptime drift slightly.
    return `booted-${Math.round((now / 1000 - uptime()) / 60)}`
  }
}

import { hostname } from 'node:os'
import { hasEnded, type ProcessMark, parseMark, readProcessStat } from '../../lib/processes.ts'
import type { InstancesTable } from '../database.ts'
import type { FindLiving } from '../tables/instances.ts'
import type { Engine, Statement } from '../unit.ts'
import { instanceLock } from './connection.ts'
import { databaseNow } from './presence.ts'

/** How long an instance that lost its connection may take to reconnect, while the database answers. */
const graceMs = 5000

const lockedSql = `select id, renewed_at, ${databaseNow} as now, exists (
    select 1 from pg_locks
    where locktype = 'advisory' and objsubid = 1 and granted
      and database = (select oid from pg_database where datname = current_database())
      and (classid::bigint << 32 | objid::bigint) = ${instanceLock('instances.id')}
  ) as locked
  from instances where id = any($1)`

type LockedRow = {
  readonly id: string
  readonly renewed_at: number | null
  readonly now: number
  readonly locked: boolean
}

type LivingParts = {
  query: Engine['query']
  bootId: string
  mark: ProcessMark | undefined
  /** How many milliseconds this instance has held its lease without interruption. */
  steadyFor(): number
}

/**
 * An instance that holds its lock is alive. The database releases the lock when the connection ends, but the process
 * may still be running, so a free lock is not enough:
 * - If the process is visible, the process decides.
 * - Otherwise the lock must be free and the lease must have expired `graceMs` ago. The database must also have answered
 *   this instance for as long: after an outage of the database all leases have expired, and the first instance that
 *   reconnects must not declare the others dead.
 */
export function createFindLiving({ query, bootId, mark, steadyFor }: LivingParts): FindLiving {
  return async (candidates) => {
    if (candidates.length === 0) return new Set()
    const ids = candidates.map(({ id }) => id)
    const rows = (await query({ sql: lockedSql, parameters: [ids] })) as readonly LockedRow[]
    const found = new Map(rows.map((row) => [row.id, row]))
    const living = await Promise.all(candidates.map((candidate) => isLiving(candidate, found.get(candidate.id))))
    return new Set(ids.filter((_, index) => living[index]))
  }

  async function isLiving(candidate: InstancesTable, row: LockedRow | undefined): Promise<boolean> {
    if (!row) return false
    if (row.locked) return true
    const theirs = parseMark(candidate.process)
    const sameBoot = candidate.boot_id === bootId
    if (theirs && sameBoot && theirs.namespace === mark?.namespace) return isRunning(candidate.pid, theirs)
    if (candidate.ended_at !== null) return false
    if (steadyFor() < graceMs || row.now - (row.renewed_at ?? candidate.started_at) < graceMs) return true
    // Without a mark only the process id is known. In doubt the instance is treated as alive: leaving rows behind is
    // better than closing the work of a running instance.
    return !theirs && sameBoot && candidate.host === hostname() && processExists(candidate.pid)
  }
}

async function isRunning(pid: number, { startTime }: ProcessMark): Promise<boolean> {
  const stat = await readProcessStat(pid)
  return stat !== undefined && stat.startTime === startTime && !hasEnded(stat)
}

export async function readDatabaseTime(query: Engine['query']): Promise<number> {
  const [row] = (await query({ sql: `select ${databaseNow} as now`, parameters: [] })) as readonly { now: number }[]
  return row?.now ?? Number.NaN
}

function processExists(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}

/**
 * The first step of a unit that closes work of a dead instance: takes the lock of that instance until the commit. If
 * the instance is alive again, it holds the lock and the unit is refused.
 */
export function lockDeadInstance(instance: string): Statement {
  return {
    sql: `select 1 where pg_try_advisory_xact_lock(${instanceLock('$1::text')})`,
    parameters: [instance],
    expect: 1,
  }
}

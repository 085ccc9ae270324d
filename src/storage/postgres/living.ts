import { hostname } from 'node:os'
import { hasEnded, type ProcessMark, parseMark, readProcessStat } from '../../lib/processes.ts'
import type { InstancesTable } from '../database.ts'
import type { FindLiving } from '../tables/instances.ts'
import type { Engine, Statement } from '../unit.ts'
import { instanceLock } from './connection.ts'
import { databaseNow } from './presence.ts'

/** How long an instance that lost its connection may take to come back, while the database answers. */
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
  /** For how many milliseconds this instance has had its lease without a gap. */
  steadyFor(): number
}

/**
 * An instance that has its lock is alive; the database releases the lock when the connection ends. A connection can break
 * while the process goes on, so a free lock alone proves nothing:
 * - Where the process can be seen, the process decides.
 * - Elsewhere the lock must be free and the lease over for `graceMs`. The database must have answered this instance for
 *   as long: after a pause of the database everybody's lease is over, and the first one back must not bury the others.
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
    // Without a mark the process id is all there is: better to leave something behind than to end a living one's.
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
 * The first step of a unit that closes something of a dead instance: takes its lock until the commit. An instance that
 * came back after it was looked at has the lock, and the unit is refused.
 */
export function holdDeath(instance: string): Statement {
  return {
    sql: `select 1 where pg_try_advisory_xact_lock(${instanceLock('$1::text')})`,
    parameters: [instance],
    expect: 1,
  }
}

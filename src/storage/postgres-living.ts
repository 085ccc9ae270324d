import { hostname } from 'node:os'
import type { InstancesTable } from './database.ts'
import type { FindLiving } from './instances.ts'
import { instanceLock } from './postgres-connection.ts'
import { databaseNow } from './postgres-presence.ts'
import type { Engine } from './unit.ts'

/** An instance whose connection broke gets so long to come back before its calls are closed for it. */
const graceMs = 5000

const locked = `select id, ${databaseNow} as now, exists (
    select 1 from pg_locks
    where locktype = 'advisory' and objsubid = 1 and granted
      and database = (select oid from pg_database where datname = current_database())
      and (classid::bigint << 32 | objid::bigint) = ${instanceLock('instances.id')}
  ) as locked
  from instances where ended_at is null`

type LockedRow = { readonly id: string; readonly now: number; readonly locked: boolean }

/**
 * Alive is who holds its lock, which the database releases when a connection ends. Who lost it a moment ago may only have
 * lost the connection: it counts as alive for a while, unless its process is known to be gone.
 */
export function createFindLiving(query: Engine['query'], bootId: string): FindLiving {
  return async (candidates) => {
    if (candidates.length === 0) return new Set()
    const rows = (await query({ sql: locked, parameters: [] })) as readonly LockedRow[]
    const found = new Map(rows.map((row) => [row.id, row]))
    return new Set(candidates.filter((candidate) => isLiving(candidate, found.get(candidate.id))).map(({ id }) => id))
  }

  function isLiving(candidate: InstancesTable, row: LockedRow | undefined): boolean {
    if (!row) return false // ended meanwhile
    if (row.locked) return true
    if (row.now - (candidate.renewed_at ?? candidate.started_at) > graceMs) return false
    return candidate.host !== hostname() || candidate.boot_id !== bootId || processExists(candidate.pid)
  }
}

function processExists(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}

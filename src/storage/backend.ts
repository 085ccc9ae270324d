import { resolve } from 'node:path'
import type { GatewayError } from '../contract/errors.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import type { ProcessMark } from '../lib/processes.ts'
import { type Changes, createLocalChanges } from './changes.ts'
import type { Database } from './database.ts'
import { createPostgresDatabase, createSqliteDatabase, type QueryPorts } from './dialect.ts'
import { createSharedClock } from './postgres/shared-clock.ts'
import { openSqliteEngine } from './sqlite/engine.ts'
import type { FindLiving } from './tables/instances.ts'
import type { Engine, Statement } from './unit.ts'

export type DatabaseKind = 'sqlite' | 'postgresql'

/**
 * The differences between SQLite and PostgreSQL: opening the database, the SQL dialect, and whether other instances may
 * use it.
 */
export type Backend = {
  readonly kind: DatabaseKind
  readonly engine: Engine
  /** Opens another engine on the same data after the first one failed. */
  reopen(): Promise<Engine>
  createDatabase(ports: QueryPorts): Database
  readonly changes: Changes
  /** The clock for expiry. It follows the database's clock if several machines share the database. */
  readonly clock: Clock
  /** Only for shared databases: why this instance must not accept calls now; undefined if it may. */
  findProblem?: () => GatewayError | undefined
  findLiving?: (query: Engine['query']) => FindLiving
  /** The first step of a unit that closes work of a dead instance. The unit is refused if that instance is alive again. */
  lockDeadInstance?: (instance: string) => Statement
  /** Milliseconds since 1970 from the database's own clock. Not set for SQLite. */
  databaseTime?: (query: Engine['query']) => Promise<number>
  /** Call it after the row of this instance was inserted. */
  begin(): Promise<void>
  /** Call it before the last unit is written. */
  leave(): Promise<void>
}

export type BackendParts = {
  readonly folder: string
  readonly databaseUrl?: string | undefined
  readonly instance: string
  /** The key that chains the audit entries. */
  readonly auditKey: Buffer
  readonly bootId: string
  readonly mark: ProcessMark | undefined
  readonly clock: Clock
  readonly log: Log
  readonly maxPages?: number | undefined
}

export async function openBackend(parts: BackendParts): Promise<Backend> {
  return parts.databaseUrl === undefined ? openSqlite(parts) : openPostgres(parts, parts.databaseUrl)
}

async function openSqlite({ folder, instance, auditKey, clock, maxPages }: BackendParts): Promise<Backend> {
  const open = () => openSqliteEngine({ folder: resolve(folder), instance, auditKey, maxPages, now: clock.now() })
  return {
    kind: 'sqlite',
    engine: await open(),
    reopen: open,
    createDatabase: createSqliteDatabase,
    clock,
    changes: createLocalChanges(),
    async begin() {},
    async leave() {},
  }
}

/** Imported only when needed, so that installations with SQLite do not load the PostgreSQL driver. */
async function openPostgres(parts: BackendParts, url: string): Promise<Backend> {
  const { instance, auditKey, bootId, mark, log } = parts
  const clock = createSharedClock(parts.clock)
  const [{ openPostgresEngine }, { openPresence }, { createFindLiving, lockDeadInstance, readDatabaseTime }] =
    await Promise.all([
      import('./postgres/engine.ts'),
      import('./postgres/presence.ts'),
      import('./postgres/living.ts'),
    ])
  const open = () => openPostgresEngine({ url, instance, auditKey, clock })
  const engine = await open()
  const presence = await openPresence({ url, instance, clock, log }).catch(async (error: unknown) => {
    await engine.close()
    throw error
  })
  return {
    kind: 'postgresql',
    engine,
    reopen: open,
    createDatabase: createPostgresDatabase,
    clock,
    changes: presence.changes,
    findProblem: presence.findProblem,
    findLiving: (query) => createFindLiving({ query, bootId, mark, steadyFor: presence.steadyFor }),
    lockDeadInstance,
    databaseTime: readDatabaseTime,
    begin: presence.begin,
    leave: presence.close,
  }
}

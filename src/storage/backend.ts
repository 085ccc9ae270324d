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

/** What differs between the databases: how to open one, how to word a query, and whether others are there too. */
export type Backend = {
  readonly kind: DatabaseKind
  readonly engine: Engine
  /** Another engine on the same data, for when the first one died. */
  reopen(): Promise<Engine>
  createDatabase(ports: QueryPorts): Database
  readonly changes: Changes
  /** By which things expire: the database's where several machines share it. */
  readonly clock: Clock
  /** Only where others may be there: why this instance may promise nothing. */
  findProblem?: () => GatewayError | undefined
  findLiving?: (query: Engine['query']) => FindLiving
  /** The first step of a unit about a dead instance: refuses the unit if that instance is back. */
  holdDeath?: (instance: string) => Statement
  /** Milliseconds since 1970 by the clock of the database, where it has one of its own. */
  databaseTime?: (query: Engine['query']) => Promise<number>
  /** This instance has its row now. */
  begin(): Promise<void>
  /** Before the last unit is written. */
  leave(): Promise<void>
}

export type BackendParts = {
  readonly folder: string
  readonly databaseUrl?: string | undefined
  readonly instance: string
  /** By which the entries of the record are chained. */
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

/** Loaded when somebody has a PostgreSQL: nobody else pays for it. */
async function openPostgres(parts: BackendParts, url: string): Promise<Backend> {
  const { instance, auditKey, bootId, mark, log } = parts
  const clock = createSharedClock(parts.clock)
  const [{ openPostgresEngine }, { openPresence }, { createFindLiving, holdDeath, readDatabaseTime }] =
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
    holdDeath,
    databaseTime: readDatabaseTime,
    begin: presence.begin,
    leave: presence.close,
  }
}

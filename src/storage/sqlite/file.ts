import { chmodSync, closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { GatewayError } from '../../contract/errors.ts'
import { crashPoint } from '../../lib/crash-point.ts'
import { makePrivateFolder } from '../../lib/private-folder.ts'
import { type Migration, migrations, migrationsTable, toPending } from '../migrations.ts'
import { copyBeforeMigration } from './copy.ts'
import type { SqliteSettings } from './protocol.ts'

export type Connection = Sqlite.Database
export type SqliteFile = { readonly connection: Connection; close(): void }

/** Another program, such as a backup, may lock the file briefly. */
export const busyTimeout = 5000
/** Long enough to decide between two gateways that start at the same time. */
const lockTimeout = 200

/** 16 MB: most pages change many times between checkpoints, and are copied into the database only once. */
const checkpointPages = 4000

/** With this mode a file can return unused pages in small steps. An existing file gets this mode only by a full VACUUM. */
export const stepwiseMode = 'auto_vacuum = INCREMENTAL'

/** Takes the lock of the folder, then opens and migrates its database. */
export function openSqliteFile(settings: SqliteSettings): SqliteFile {
  makePrivateFolder(settings.folder)
  const lock = takeLock(settings.folder)
  try {
    const connection = openDatabase(settings)
    return {
      connection,
      close() {
        connection.close()
        lock.close()
      },
    }
  } catch (error) {
    lock.close()
    throw error
  }
}

/** Locks a folder for writing data into it. Returns the function that releases the lock. */
export function lockFolder(folder: string): () => void {
  makePrivateFolder(folder)
  const lock = takeLock(folder)
  return () => void lock.close()
}

/** A transaction that never ends: the operating system releases the lock when this process ends, even after a crash. */
function takeLock(folder: string): Connection {
  const lock = openPrivate(join(folder, 'gateway.lock'), lockTimeout)
  try {
    lock.exec('begin exclusive')
    return lock
  } catch (error) {
    lock.close()
    if (!isBusy(error)) throw error
    throw new GatewayError('data-locked', `The data folder ${folder} is in use by another gateway`)
  }
}

function openDatabase({ folder, maxPages, now }: SqliteSettings): Connection {
  const connection = openPrivate(join(folder, 'sallyport.db'), busyTimeout)
  try {
    connection.pragma(stepwiseMode)
    connection.pragma('journal_mode = WAL')
    connection.pragma('synchronous = FULL')
    connection.pragma('foreign_keys = ON')
    connection.pragma(`wal_autocheckpoint = ${checkpointPages}`)
    if (maxPages !== undefined) connection.pragma(`max_page_count = ${maxPages}`)
    const pending = findPending(connection)
    if (pending) copyBeforeMigration(connection, folder, pending)
    migrate(connection, now)
    return connection
  } catch (error) {
    connection.close()
    throw error
  }
}

/** The first migration that is missing in existing data; undefined for new and for current data. */
function findPending(connection: Connection): number | undefined {
  const isThere = connection.prepare("select 1 from sqlite_schema where name = 'migrations'").get() !== undefined
  const applied = isThere ? listApplied(connection) : []
  return applied.length === 0 ? undefined : toPending(applied, migrations)[0]?.id
}

function listApplied(connection: Connection): number[] {
  return connection.prepare<[], number>('select id from migrations').pluck().all()
}

export function migrate(connection: Connection, now: number, known: readonly Migration[] = migrations): void {
  connection
    .transaction(() => {
      connection.exec(migrationsTable)
      const applied = listApplied(connection)
      const insert = connection.prepare('insert into migrations (id, name, applied_at) values (?, ?, ?)')
      for (const { id, name, statements } of toPending(applied, known)) {
        for (const statement of statements) connection.exec(statement)
        insert.run(id, name, now)
        crashPoint(`migration ${id} is applied, not committed`)
      }
    })
    .immediate()
}

/** SQLite would create the file readable for everyone. Its WAL files inherit the mode that is set here. */
export function openPrivate(path: string, timeout: number): Connection {
  try {
    closeSync(openSync(path, 'wx', 0o600))
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
    // Uses the path, not a descriptor: closing any descriptor of a file drops this process's locks on it.
    chmodSync(path, 0o600)
  }
  return new Sqlite(path, { timeout })
}

function isBusy(error: unknown): boolean {
  return error instanceof Sqlite.SqliteError && error.code.startsWith('SQLITE_BUSY')
}

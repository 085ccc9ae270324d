import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Compaction } from '../../contract/compaction.ts'
import { GatewayError } from '../../contract/errors.ts'
import { toSystemReason } from '../../contract/system-error.ts'
import type { CompactHow, CompactStep } from '../unit.ts'
import { busyTimeout, type Connection, lockFolder, openPrivate, stepwiseMode } from './file.ts'
import { compactFailed, sizeOnDisk } from './room.ts'

/** About half a megabyte: a few milliseconds for which a commit may have to wait. */
const pagesPerStep = 128
const incrementalMode = 2
const shortTimeout = 100

export function compact(connection: Connection, folder: string, how: CompactHow): CompactStep {
  const stepwise = connection.pragma('auto_vacuum', { simple: true }) === incrementalMode
  if (how === 'whole') writeWhole(connection, folder)
  if (how === 'step' && stepwise) connection.pragma(`incremental_vacuum(${pagesPerStep})`)
  if (how === 'trim') trim(connection)
  const left = Number(connection.pragma('freelist_count', { simple: true }))
  // The file gets shorter when its log is copied into it. PASSIVE waits for nobody.
  if (how === 'step' && left === 0) connection.pragma('wal_checkpoint(PASSIVE)')
  return { size: sizeOnDisk(folder), left, stepwise }
}

/** Nothing else can be written meanwhile. What fails is taken back by SQLite. */
function writeWhole(connection: Connection, folder: string): void {
  // In a container only the data folder may be writable.
  connection.pragma(`temp_store_directory = '${folder.replaceAll("'", "''")}'`)
  connection.pragma(stepwiseMode)
  try {
    connection.exec('vacuum')
  } finally {
    // Also after a full disk: else the log keeps the room that the attempt has taken.
    trim(connection)
    connection.pragma("temp_store_directory = ''")
  }
}

/** Calls wait meanwhile, so a program that still reads, a backup for example, is not waited for. */
function trim(connection: Connection): void {
  connection.pragma(`busy_timeout = ${shortTimeout}`)
  connection.pragma('wal_checkpoint(TRUNCATE)')
  connection.pragma(`busy_timeout = ${busyTimeout}`)
}

/** For a data folder that no gateway uses: nobody else gets its lock meanwhile. */
export function compactFolder(folder: string): Compaction {
  const path = join(folder, 'sallyport.db')
  if (!existsSync(path)) throw new GatewayError('not-found', `${folder} contains no database`, { folder })
  const unlock = lockFolder(folder)
  try {
    const connection = openPrivate(path, busyTimeout)
    try {
      const before = sizeOnDisk(folder)
      return { database: 'sqlite', before, after: compact(connection, folder, 'whole').size }
    } finally {
      connection.close()
    }
  } catch (error) {
    throw compactFailed(folder, toSystemReason(error))
  } finally {
    unlock()
  }
}

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Compaction } from '../../contract/compaction.ts'
import { GatewayError } from '../../contract/errors.ts'
import { toSystemReason } from '../../contract/system-error.ts'
import type { CompactHow, CompactStep } from '../unit.ts'
import { busyTimeout, type Connection, lockFolder, openPrivate, stepwiseMode } from './file.ts'
import { compactFailed, sizeOnDisk } from './room.ts'

/** Free pages that one step removes from the end of the file, about half a megabyte. Commits wait a few milliseconds for a step. */
const pagesPerStep = 128
const incrementalMode = 2
const shortTimeout = 100

export function compact(connection: Connection, folder: string, how: CompactHow): CompactStep {
  const stepwise = connection.pragma('auto_vacuum', { simple: true }) === incrementalMode
  if (how === 'whole') writeWhole(connection, folder)
  if (how === 'step' && stepwise) connection.pragma(`incremental_vacuum(${pagesPerStep})`)
  if (how === 'trim') trim(connection)
  const left = Number(connection.pragma('freelist_count', { simple: true }))
  // The file shrinks when its WAL is checkpointed. PASSIVE does not wait for readers.
  if (how === 'step' && left === 0) connection.pragma('wal_checkpoint(PASSIVE)')
  return { size: sizeOnDisk(folder), left, stepwise }
}

/** Blocks all writes. If it fails, SQLite restores the old file. */
function writeWhole(connection: Connection, folder: string): void {
  // SQLite needs a writable folder for temporary files. In a container only the data folder may be writable.
  connection.pragma(`temp_store_directory = '${folder.replaceAll("'", "''")}'`)
  connection.pragma(stepwiseMode)
  try {
    connection.exec('vacuum')
  } finally {
    // Also after an error such as a full disk: otherwise the WAL keeps the space that the attempt used.
    trim(connection)
    connection.pragma("temp_store_directory = ''")
  }
}

/** Uses a short timeout, because calls wait during this step: it does not wait for readers such as a backup. */
function trim(connection: Connection): void {
  connection.pragma(`busy_timeout = ${shortTimeout}`)
  connection.pragma('wal_checkpoint(TRUNCATE)')
  connection.pragma(`busy_timeout = ${busyTimeout}`)
}

/** For a data folder that no gateway uses. Holds the folder's lock, so that no gateway can start. */
export function compactFolder(folder: string): Compaction {
  const path = join(folder, 'sallyport.db')
  if (!existsSync(path)) throw new GatewayError('not-found', `There is no database in ${folder}`, { folder })
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

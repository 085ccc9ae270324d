import { statSync } from 'node:fs'
import { join } from 'node:path'
import { GatewayError } from '../../contract/errors.ts'

/** The size of the database file and its WAL. */
export function sizeOnDisk(folder: string): number {
  const files = ['sallyport.db', 'sallyport.db-wal']
  return files.reduce((bytes, name) => bytes + (statSync(join(folder, name), { throwIfNoEntry: false })?.size ?? 0), 0)
}

/** SQLite rolls back a VACUUM that fails, so the data is unchanged. */
export function compactFailed(folder: string, reason: string): GatewayError {
  const room = `Compacting needs up to ${Math.ceil((sizeOnDisk(folder) * 2) / 1_000_000)} MB of free disk space there`
  return new GatewayError(
    'compact-failed',
    `The database in ${folder} was not compacted: ${reason}. Nothing was lost. ${room}.`,
    { folder },
  )
}

import { statSync } from 'node:fs'
import { join } from 'node:path'
import { GatewayError } from '../../contract/errors.ts'

/** Of the database and its log. */
export function sizeOnDisk(folder: string): number {
  const files = ['sallyport.db', 'sallyport.db-wal']
  return files.reduce((bytes, name) => bytes + (statSync(join(folder, name), { throwIfNoEntry: false })?.size ?? 0), 0)
}

/** SQLite takes back a VACUUM that fails, so the data is what it was. */
export function compactFailed(folder: string, reason: string): GatewayError {
  const room = `Compacting needs up to ${Math.ceil((sizeOnDisk(folder) * 2) / 1_000_000)} MB of free room there`
  return new GatewayError(
    'compact-failed',
    `The database in ${folder} was not compacted: ${reason}. Nothing was lost. ${room}.`,
    { folder },
  )
}

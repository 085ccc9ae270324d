import { closeSync, openSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { placeFile } from '../../lib/durable-file.ts'
import type { Connection } from './file.ts'

/** The name of a copy: `sallyport.before-15.db` was made before migration 15. */
const copyPattern = /^sallyport\.before-\d+\.db$/

/** Copies the whole database before it is migrated. Only the newest copy is kept. */
export function copyBeforeMigration(connection: Connection, folder: string, migration: number): void {
  const name = `sallyport.before-${migration}.db`
  const unfinished = join(folder, `${name}.tmp`)
  rmSync(unfinished, { force: true })
  closeSync(openSync(unfinished, 'wx', 0o600)) // SQLite fills an empty file and keeps its mode
  try {
    connection.prepare('vacuum into ?').run(unfinished)
    placeFile(unfinished, join(folder, name))
  } finally {
    rmSync(unfinished, { force: true })
  }
  for (const other of readdirSync(folder)) if (copyPattern.test(other) && other !== name) rmSync(join(folder, other))
}

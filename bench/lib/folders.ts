import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root: string = fileURLToPath(new URL('../../', import.meta.url))

/** On the disk of the sources, because the system's temporary folder may be in memory, where commits cost nothing. */
export const cacheFolder: string = join(root, '.cache', 'bench')

/** Removed when the process exits, except after SIGKILL. */
export function createWorkFolder(): string {
  mkdirSync(cacheFolder, { recursive: true })
  const path = mkdtempSync(join(cacheFolder, 'work-'))
  process.once('exit', () => rmSync(path, { recursive: true, force: true, maxRetries: 3 }))
  return path
}

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root: string = fileURLToPath(new URL('../../', import.meta.url))

/** Beside the sources, on the same disk: many a folder for temporary files is only memory, which commits at once. */
export const cacheFolder: string = join(root, '.cache', 'bench')

/** Gone when the process is, however it ends short of SIGKILL. */
export function createWorkFolder(): string {
  mkdirSync(cacheFolder, { recursive: true })
  const path = mkdtempSync(join(cacheFolder, 'work-'))
  process.once('exit', () => rmSync(path, { recursive: true, force: true, maxRetries: 3 }))
  return path
}

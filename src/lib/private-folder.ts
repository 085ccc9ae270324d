import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'

const mode = 0o700

/** Creates a folder that only this user can access, and its missing parents, unless it exists. */
export function makePrivateFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode })
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error
    // With `recursive` Node reports ENOENT for a read-only file system too. Without it Node reports the real error.
    makeEach(folder)
  }
}

function makeEach(folder: string): void {
  const above = dirname(folder)
  try {
    mkdirSync(folder, { mode })
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code === 'EEXIST') return
    if (code !== 'ENOENT' || above === folder) throw error
    makeEach(above)
    mkdirSync(folder, { mode })
  }
}

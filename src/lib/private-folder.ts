import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'

const mode = 0o700

/** Makes a folder for this user only, with the folders above it, unless it is there. */
export function makePrivateFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode })
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error
    // Node says that of a read-only file system too. Without `recursive` the system's own answer comes through.
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

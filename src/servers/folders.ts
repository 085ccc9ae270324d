import { mkdtemp, rename, rm, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { makePrivateFolder } from '../lib/private-folder.ts'

/** Where programs run that have no `cwd`: each in a folder of its own, so that none writes into the gateway's. */
export type WorkingFolders = {
  of(connection: string): string
  /** An empty folder for a program that is only tried. */
  forTrial(): Promise<{ readonly path: string; remove(): Promise<void> }>
  /**
   * The server was removed. Its files are set aside, not deleted, so that a new server of the same name starts with
   * an empty folder and nothing is lost.
   */
  setAside(connection: string, now: number): Promise<void>
}

export function createWorkingFolders(dataFolder: string): WorkingFolders {
  const root = join(dataFolder, 'servers')
  const removed = join(root, '.removed')
  /** Ids are names with a scope, such as `files@user:kim`. */
  const toName = (connection: string) => encodeURIComponent(connection)

  return {
    of: (connection) => join(root, toName(connection)),
    async forTrial() {
      makePrivateFolder(root)
      const path = await mkdtemp(join(root, '.trial-'))
      return { path, remove: () => rm(path, { recursive: true, force: true }) }
    },
    async setAside(connection, now) {
      const folder = join(root, toName(connection))
      if (await isGoneOrEmpty(folder)) return
      makePrivateFolder(removed)
      await rename(folder, join(removed, `${toName(connection)}-${now}`))
    },
  }
}

async function isGoneOrEmpty(folder: string): Promise<boolean> {
  try {
    await rmdir(folder)
    return true
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'ENOENT'
  }
}

import { mkdtemp, rename, rm, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { makePrivateFolder } from '../lib/private-folder.ts'

/** Working folders of programs without a `cwd`: one for each, so that no program writes into the gateway's folder. */
export type WorkingFolders = {
  of(connection: string): string
  /** An empty temporary folder for a program that is only tried. */
  forTrial(): Promise<{ readonly path: string; remove(): Promise<void> }>
  /**
   * Renames the folder of a removed server instead of deleting it, so that a new server of the same name starts with
   * an empty folder and no file is lost.
   */
  setAside(connection: string, now: number): Promise<void>
}

export function createWorkingFolders(dataFolder: string): WorkingFolders {
  const root = join(dataFolder, 'servers')
  const removed = join(root, '.removed')
  /** Connection ids may contain a scope, such as `files@user:kim`. */
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

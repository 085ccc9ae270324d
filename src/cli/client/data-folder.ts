import { existsSync, lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { GatewayError, toGatewayError } from '../../contract/errors.ts'
import { createFile } from '../../lib/durable-file.ts'
import { findFolderWeakness, quote, readOwnFile, toUnsafe } from '../../lib/file-trust.ts'
import { makePrivateFolder } from '../../lib/private-folder.ts'
import { isSealed, sealFolder } from './seal.ts'
import type { Settings } from './settings.ts'

/** What a running gateway leaves in its data folder for the commands on the same machine. */
export const GatewayFile = z.object({
  url: z.url(),
  pid: z.int(),
  instance: z.string(),
  /** Nobody started it by hand: it ends by itself when nobody uses it. */
  lingers: z.boolean().default(false),
})
export type GatewayFile = z.infer<typeof GatewayFile>

export function findGatewayFile(dataFolder: string): GatewayFile | undefined {
  const text = readOwnFile(join(dataFolder, 'gateway.json'))
  if (text === undefined) return undefined
  try {
    return GatewayFile.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}

export function findAdminToken(dataFolder: string): string | undefined {
  return readOwnFile(join(dataFolder, 'admin-token'))?.trim() || undefined
}

/** Throws `data-unsafe` when another user of this machine could have put something into the folder. */
export function demandSafeFolder(folder: string): void {
  const weakness = existsSync(folder) ? findFolderWeakness(folder) : undefined
  if (weakness) throw toUnsafe(weakness)
}

/**
 * Throws unless the data folder is this user's own: named by `--data` or `SALLYPORT_DATA`, in the home folder, or one
 * where this user has started a gateway before. `.sallyport` in the current folder may have come with a repository.
 */
export function demandOwnFolder({ dataNamed, folderOfUser }: Settings, folder: string): void {
  if (!hasContent(folder)) return
  demandSafeFolder(folder)
  if (dataNamed || folder === folderOfUser || isSealed(folder)) return
  const message = `${folder} was not made by a gateway of yours: it may have come with this folder, and nothing in it was used`
  throw new GatewayError('data-untrusted', `${message}. If it is yours, name it: --data ${quote(folder)}`, { folder })
}

/** The same as a boolean, for commands that work without the data folder as well. */
export function isOwnFolder(settings: Settings): boolean {
  try {
    demandOwnFolder(settings, settings.dataFolder)
    return true
  } catch (error) {
    if (error instanceof GatewayError) return false
    throw error
  }
}

/** Makes the folder of a gateway that starts. From then on the commands of this user use it without `--data`. */
export async function prepareFolder(settings: Settings, talk: (line: string) => void): Promise<void> {
  const folder = settings.folderHere
  demandOwnFolder(settings, folder)
  makePrivateFolder(folder)
  demandSafeFolder(folder)
  // Tokens and keys do not belong into a repository.
  await createFile(join(folder, '.gitignore'), '*\n')
  await sealFolder(folder).catch((error: unknown) => {
    const reason = toGatewayError(error).message
    talk(`Name ${folder} with --data in other commands: no note could be left in your home folder (${reason}).`)
  })
}

/** A link counts as content, and so does a folder that cannot be read: either may lead anywhere. */
function hasContent(folder: string): boolean {
  const stats = lstatSync(folder, { throwIfNoEntry: false })
  if (!stats) return false
  try {
    return !stats.isDirectory() || readdirSync(folder).length > 0
  } catch {
    return true
  }
}

import { existsSync, lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { GatewayError, toGatewayError } from '../../contract/errors.ts'
import { createFile } from '../../lib/durable-file.ts'
import { findFolderWeakness, quote, readOwnFile, toUnsafe } from '../../lib/file-trust.ts'
import { makePrivateFolder } from '../../lib/private-folder.ts'
import { isSealed, sealFolder } from './seal.ts'
import type { Settings } from './settings.ts'

/** `gateway.json`: a running gateway writes it into its data folder, for commands on the same machine. */
export const GatewayFile = z.object({
  url: z.url(),
  pid: z.int(),
  instance: z.string(),
  /** Started by `stdio`: the gateway ends when it is not used. */
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

/** Throws `data-unsafe` if another user of this machine can write to the folder. */
export function demandSafeFolder(folder: string): void {
  const weakness = existsSync(folder) ? findFolderWeakness(folder) : undefined
  if (weakness) throw toUnsafe(weakness)
}

/**
 * Throws unless the data folder is this user's own: given by `--data` or `SALLYPORT_DATA`, in the home folder, or a
 * folder where this user has started a gateway before. `.sallyport` in the current folder may come from a repository.
 */
export function demandOwnFolder({ dataNamed, folderOfUser }: Settings, folder: string): void {
  if (!hasContent(folder)) return
  demandSafeFolder(folder)
  if (dataNamed || folder === folderOfUser || isSealed(folder)) return
  const message = `${folder} was not created by a gateway of this user. It may come from a repository, so it is not used`
  throw new GatewayError('data-untrusted', `${message}. If you trust it, use --data ${quote(folder)}`, { folder })
}

/** Like `demandOwnFolder`, for commands that also work without a data folder. */
export function isOwnFolder(settings: Settings): boolean {
  try {
    demandOwnFolder(settings, settings.dataFolder)
    return true
  } catch (error) {
    if (error instanceof GatewayError) return false
    throw error
  }
}

/** Creates the data folder and seals it, so that later commands of this user accept it without `--data`. */
export async function prepareFolder(settings: Settings, talk: (line: string) => void): Promise<void> {
  const folder = settings.folderHere
  demandOwnFolder(settings, folder)
  makePrivateFolder(folder)
  demandSafeFolder(folder)
  // Keep tokens and keys out of a repository.
  await createFile(join(folder, '.gitignore'), '*\n')
  await sealFolder(folder).catch((error: unknown) => {
    const reason = toGatewayError(error).message
    talk(`Use --data ${quote(folder)} in other commands: the seal of the folder could not be written (${reason}).`)
  })
}

/** True also for a symbolic link and for an unreadable folder: their contents are not known. */
function hasContent(folder: string): boolean {
  const stats = lstatSync(folder, { throwIfNoEntry: false })
  if (!stats) return false
  try {
    return !stats.isDirectory() || readdirSync(folder).length > 0
  } catch {
    return true
  }
}

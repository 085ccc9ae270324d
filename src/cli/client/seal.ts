import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { realpathSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, isAbsolute, join } from 'node:path'
import { createFile, replaceFile } from '../../lib/durable-file.ts'
import { findFolderWeakness, readOwnFile, toUnsafe } from '../../lib/file-trust.ts'
import { makePrivateFolder } from '../../lib/private-folder.ts'

const keyForm = /^[0-9a-f]{64}$/
const sealFile = 'seal'

/**
 * The seal proves that this user has started a gateway on a data folder. A folder from a foreign repository cannot contain
 * a valid seal, because the key for seals is in the user's home folder.
 */
export async function sealFolder(folder: string, env: NodeJS.ProcessEnv = process.env): Promise<void> {
  const seal = toSeal(await makeKey(env), folder)
  const file = join(folder, sealFile)
  if (readOwnFile(file)?.trim() !== seal) await replaceFile(file, `${seal}\n`)
}

export function isSealed(folder: string, env: NodeJS.ProcessEnv = process.env): boolean {
  const found = readOwnFile(join(folder, sealFile))?.trim()
  const key = readKey(env)
  if (found === undefined || key === undefined) return false
  const [left, right] = [Buffer.from(found), Buffer.from(toSeal(key, folder))]
  return left.length === right.length && timingSafeEqual(left, right)
}

/** Contains the path of the folder, so that the seal of a copied folder is invalid. */
function toSeal(key: string, folder: string): string {
  return createHmac('sha256', key)
    .update(`sallyport data folder\n${realpathSync(folder)}`)
    .digest('hex')
}

function readKey(env: NodeJS.ProcessEnv): string | undefined {
  const key = readOwnFile(toKeyFile(env))?.trim()
  return key !== undefined && keyForm.test(key) ? key : undefined
}

async function makeKey(env: NodeJS.ProcessEnv): Promise<string> {
  const file = toKeyFile(env)
  const known = readKey(env)
  if (known !== undefined) return known
  makePrivateFolder(dirname(file))
  const weakness = findFolderWeakness(dirname(file))
  if (weakness) throw toUnsafe(weakness)
  const made = randomBytes(32).toString('hex')
  if (await createFile(file, `${made}\n`)) return made
  const other = readKey(env)
  if (other !== undefined) return other
  await replaceFile(file, `${made}\n`)
  return made
}

function toKeyFile(env: NodeJS.ProcessEnv): string {
  const given = env.XDG_STATE_HOME
  const state = given && isAbsolute(given) ? given : join(homedir(), '.local', 'state')
  return join(state, 'sallyport', 'folder-key')
}

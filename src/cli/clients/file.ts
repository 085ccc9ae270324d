import { chmodSync, closeSync, constants, fstatSync, lstatSync, openSync, readFileSync, realpathSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { GatewayError } from '../../contract/errors.ts'
import { createFile, replaceFile } from '../../lib/durable-file.ts'
import { makePrivateFolder } from '../../lib/private-folder.ts'

/** The configuration file of another program. */
export type ClientFile = {
  /** The file itself, if the path is a symbolic link. */
  readonly path: string
  /** Undefined if the file does not exist. */
  readonly text: string | undefined
  readonly mode: number
}

const mostBytes = 16_777_216
const ownerOnly = 0o600

/**
 * Reads the file that a program uses. Symbolic links are followed, and the file must belong to this user: a link in a
 * repository could name the file of somebody else.
 */
export function readClientFile(path: string): ClientFile {
  const target = followLinks(path)
  if (target === undefined)
    return { path: join(realFolder(dirname(path)), basename(path)), text: undefined, mode: ownerOnly }
  // Without O_NONBLOCK, opening a named pipe would block.
  const file = openSync(target, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0))
  try {
    const stats = fstatSync(file)
    if (!stats.isFile()) throw unsafe(`${target} is not a regular file`)
    const user = process.getuid?.()
    if (user !== undefined && stats.uid !== user) {
      throw unsafe(`${target} belongs to another user (user id ${stats.uid})`)
    }
    if (stats.size > mostBytes) throw invalid(`${target} is larger than ${mostBytes} bytes`)
    return { path: target, text: decode(target, readFileSync(file)), mode: stats.mode & 0o777 }
  } finally {
    closeSync(file)
  }
}

/** Replaces the file, unless somebody changed it since it was read. A file with a token is readable by its owner only. */
export async function writeClientFile(
  before: ClientFile,
  text: string,
  { hasToken }: { hasToken: boolean },
): Promise<void> {
  demandUnchanged(before)
  const folder = dirname(before.path)
  makePrivateFolder(folder)
  if (before.text === undefined) {
    if (await createFile(before.path, text)) return
    throw new GatewayError('config-conflict', `${before.path} was created by another program; repeat the command`)
  }
  await replaceFile(before.path, text)
  if (!hasToken && before.mode !== ownerOnly) chmodSync(before.path, before.mode)
}

type Before = { readonly text?: string | undefined; readonly mode: number }

/** Restores the exact file from before, unless somebody changed it since it was read. */
export async function restoreClientFile(now: ClientFile, { text, mode }: Before): Promise<void> {
  demandUnchanged(now)
  if (text === undefined) return rm(now.path, { force: true })
  await replaceFile(now.path, text)
  chmodSync(now.path, mode)
}

function demandUnchanged({ path, text }: ClientFile): void {
  const now = readClientFile(path)
  if (now.path === path && now.text === text) return
  throw new GatewayError(
    'config-conflict',
    `${path} was changed by another program since it was read; repeat the command`,
  )
}

/** Undefined if the file does not exist. A link to a missing file is refused, because its target is not known to be ours. */
function followLinks(path: string): string | undefined {
  if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return undefined
  try {
    return realpathSync(path)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    throw unsafe(`${path} is a symbolic link that cannot be followed (${code})`)
  }
}

function realFolder(folder: string): string {
  try {
    return realpathSync(folder)
  } catch {
    return folder
  }
}

function decode(path: string, bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw invalid(`${path} is not UTF-8 text`)
  }
}

function unsafe(message: string): GatewayError {
  return new GatewayError('client-file-unsafe', message)
}

export function invalid(message: string): GatewayError {
  return new GatewayError('client-file-invalid', message)
}

import { createHmac, hkdfSync, randomBytes } from 'node:crypto'
import { chmod, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { GatewayError } from '../contract/errors.ts'
import { toSystemReason } from '../contract/system-error.ts'
import { createFile, replaceFile } from '../lib/durable-file.ts'

export type KeyEnvironment = Readonly<Record<string, string | undefined>>

/** The available keys, newest first. Older keys exist only during a rotation. */
export type KeyRing = {
  readonly keys: readonly Buffer[]
  /** The key file; undefined if the keys come from the environment. */
  readonly file: string | undefined
}

type KeyPlaces = { readonly folder: string; readonly environment: KeyEnvironment }

const keyBytes = 32
const form = '32 bytes as base64 or as 64 hexadecimal digits; `openssl rand -base64 32` makes one'

/** Derives a separate key for each purpose, so that one leaked key does not reveal another. */
export function deriveKey(main: Buffer, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', main, 'sallyport', purpose, keyBytes))
}

/** A value to recognise a key by, which reveals nothing about the key. */
export function toKeyCheck(main: Buffer): string {
  return createHmac('sha256', deriveKey(main, 'check')).update('sallyport').digest('hex')
}

/**
 * Loads the keys from `SALLYPORT_KEY`, from the file in `SALLYPORT_KEY_FILE`, or from a file in the data folder that is
 * created once.
 */
export async function loadKeys({ folder, environment }: KeyPlaces): Promise<KeyRing> {
  const { SALLYPORT_KEY: given, SALLYPORT_KEY_PREVIOUS: previous, SALLYPORT_KEY_FILE: named } = environment
  if (given) {
    const older = previous ? [toKey(previous, 'SALLYPORT_KEY_PREVIOUS')] : []
    return { keys: [toKey(given, 'SALLYPORT_KEY'), ...older], file: undefined }
  }
  const file = named || join(folder, 'key')
  const known = await readKeys(file)
  if (known) return { keys: known, file }
  if (named) throw new GatewayError('key-invalid', `The key file ${file} does not exist`)
  // If two gateways start at once, both use the key that was written first.
  await createFile(file, `${newKey().toString('base64')}\n`)
  return { keys: (await readKeys(file)) ?? [], file }
}

/** Adds a new key before the others. The file is replaced atomically, so a reader finds either the old keys or all keys. */
export async function addKey(file: string, keys: readonly Buffer[]): Promise<Buffer> {
  const fresh = newKey()
  await saveKeys(file, [fresh, ...keys])
  return fresh
}

export async function saveKeys(file: string, keys: readonly Buffer[]): Promise<void> {
  await replaceFile(file, keys.map((key) => `${key.toString('base64')}\n`).join(''))
}

function newKey(): Buffer {
  return randomBytes(keyBytes)
}

async function readKeys(file: string): Promise<Buffer[] | undefined> {
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    const message = `The key file ${file} cannot be read: ${toSystemReason(error)}`
    throw new GatewayError('key-invalid', message, {}, { cause: error })
  })
  if (text === undefined) return undefined
  await chmod(file, 0o600).catch(() => {}) // fails if another user owns the file
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  if (lines.length === 0)
    throw new GatewayError('key-invalid', `The key file ${file} is empty. It must contain ${form}`)
  return lines.map((line) => toKey(line, file))
}

/** The error must not contain the text, because it may be a key. */
function toKey(text: string, from: string): Buffer {
  const trimmed = text.trim()
  const key = /^[0-9a-fA-F]{64}$/.test(trimmed)
    ? Buffer.from(trimmed, 'hex')
    : /^[A-Za-z0-9+/_-]{43}=?$/.test(trimmed)
      ? Buffer.from(trimmed, 'base64')
      : undefined
  if (key?.length === keyBytes) return key
  throw new GatewayError('key-invalid', `${from} is not a valid key. It must be ${form}`)
}

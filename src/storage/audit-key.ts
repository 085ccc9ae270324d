import { createHmac, randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { GatewayError } from '../contract/errors.ts'
import { toSystemReason } from '../contract/system-error.ts'
import { createFile, replaceFile } from '../lib/durable-file.ts'
import { makePrivateFolder } from '../lib/private-folder.ts'
import { deriveKey, type KeyEnvironment, loadKeys } from './key.ts'
import type { DocumentStore } from './tables/documents.ts'

/** The first key chains new entries. The others chained older entries. */
export type AuditKeys = readonly [Buffer, ...Buffer[]]

type KeyPlaces = { readonly folder: string; readonly environment: KeyEnvironment }

const keyBytes = 32

/**
 * If the operator set a main key, the audit key is derived from it, so that all gateways on one database have the same
 * audit key. Otherwise the data folder has its own audit key, which a rotation does not change.
 */
export async function loadAuditKeys(places: KeyPlaces): Promise<AuditKeys> {
  const { folder } = places
  try {
    makePrivateFolder(folder)
  } catch (error) {
    const message = `The data folder ${folder} cannot be used: ${toSystemReason(error)}`
    throw new GatewayError('storage-unavailable', message, {}, { cause: error })
  }
  const [, ...older] = await mainKeys(places)
  await rememberAuditKeys(places, older)
  const known = await findAuditKeys(places)
  if (known) return known
  await createFile(toKeyFile(folder), `${randomBytes(keyBytes).toString('base64url')}\n`)
  return (await findAuditKeys(places)) ?? damaged(folder)
}

/** Finds the keys without creating one. */
export async function findAuditKeys(places: KeyPlaces): Promise<AuditKeys | undefined> {
  const derived = (await mainKeys(places)).map(toAuditKey)
  const [first, ...others] = [...derived, ...readKeys(places.folder)]
  return first && [first, ...others]
}

/**
 * All gateways on one database must use the same audit key: with different keys each would report the entries of the
 * others as forged. The first gateway stores a proof of its key. A gateway that does not have this key, or had it
 * before a rotation, does not start.
 */
export async function assertSameAuditKey(documents: DocumentStore, keys: AuditKeys): Promise<void> {
  const name = 'audit-key'
  const [proof = '', ...earlier] = keys.map((key) =>
    createHmac('sha256', key).update('a proof of the key').digest('hex'),
  )
  await documents.replace({ name, format: 'proof', text: proof, version: 0 })
  const found = await documents.find(name)
  if (found?.text === proof) return
  if (!found || !earlier.includes(found.text)) {
    throw new GatewayError('audit-key-wrong', 'The audit in this database was written with another key')
  }
  await documents.replace({ ...found, text: proof })
}

/** Stores the audit keys of main keys that a rotation removes, so that entries chained with them can still be verified. */
export async function rememberAuditKeys({ folder, environment }: KeyPlaces, mains: readonly Buffer[]): Promise<void> {
  if (!isGiven(environment)) return
  for (const key of mains.map(toAuditKey)) {
    // Storing an old key here is safe: later anchors cover the entries that it chained.
    const known = readKeys(folder)
    if (known.some((each) => each.equals(key))) continue
    await replaceFile(toKeyFile(folder), [...known, key].map((each) => `${each.toString('base64url')}\n`).join(''))
  }
}

export function toKeyFile(folder: string): string {
  return join(folder, 'audit-key')
}

async function mainKeys({ folder, environment }: KeyPlaces): Promise<readonly Buffer[]> {
  return isGiven(environment) ? (await loadKeys({ folder, environment })).keys : []
}

function isGiven({ SALLYPORT_KEY: given, SALLYPORT_KEY_FILE: named }: KeyEnvironment): boolean {
  return Boolean(given || named)
}

function toAuditKey(main: Buffer): Buffer {
  return deriveKey(main, 'audit')
}

function readKeys(folder: string): Buffer[] {
  const lines = (readIfThere(toKeyFile(folder)) ?? '').split('\n').filter((line) => line.trim() !== '')
  return lines.map((line) => {
    const key = Buffer.from(line.trim(), 'base64url')
    return key.length === keyBytes ? key : damaged(folder)
  })
}

function damaged(folder: string): never {
  throw new GatewayError(
    'storage-unavailable',
    `${toKeyFile(folder)} does not contain a valid key. Restore this file from a copy`,
  )
}

function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    const message = `${file} cannot be read: ${toSystemReason(error)}`
    throw new GatewayError('storage-unavailable', message, {}, { cause: error })
  }
}

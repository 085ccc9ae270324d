import { createHmac, hkdfSync, randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { GatewayError } from '../contract/errors.ts'
import { appendLine, createFile } from '../lib/durable-file.ts'
import type { DocumentStore } from './documents.ts'

/** The key that new entries are chained with comes first; behind it those that older ones were chained with. */
export type AuditKeys = readonly [Buffer, ...Buffer[]]

type KeyPlaces = {
  readonly folder: string
  /** With `SALLYPORT_KEY` all gateways on one database have the same; without it the data folder has its own. */
  readonly environment: Readonly<Record<string, string | undefined>>
}

const keyBytes = 32

/** Makes a key at the first start, and remembers the one before when the environment brings another. */
export async function loadAuditKeys({ folder, environment }: KeyPlaces): Promise<AuditKeys> {
  const { SALLYPORT_KEY_PREVIOUS: previous } = environment
  await mkdir(folder, { recursive: true, mode: 0o700 })
  if (environment.SALLYPORT_KEY && previous) await remember(folder, derive(previous, 'SALLYPORT_KEY_PREVIOUS'))
  const known = findAuditKeys({ folder, environment })
  if (known) return known
  await createFile(toKeyFile(folder), `${randomBytes(keyBytes).toString('base64url')}\n`)
  return findAuditKeys({ folder, environment }) ?? damaged(folder)
}

/** For whoever only looks: makes none. */
export function findAuditKeys({ folder, environment }: KeyPlaces): AuditKeys | undefined {
  const { SALLYPORT_KEY: given } = environment
  const [first, ...others] = [...(given ? [derive(given, 'SALLYPORT_KEY')] : []), ...readKeys(folder)]
  return first && [first, ...others]
}

/**
 * Several gateways on one database write one record. With a key of its own each would take the others' entries for
 * forged; so the first one leaves a proof of its key, and who has neither that one nor knew it before does not start.
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
    throw new GatewayError('audit-key-wrong', 'The record in this database was written with another key')
  }
  await documents.replace({ ...found, text: proof })
}

export function toKeyFile(folder: string): string {
  return join(folder, 'audit-key')
}

/** What it chained is linked by anchors of later chains, so that it may be read, but must not be lost. */
async function remember(folder: string, key: Buffer): Promise<void> {
  if (readKeys(folder).some((known) => known.equals(key))) return
  await appendLine(toKeyFile(folder), `${key.toString('base64url')}\n`)
}

function readKeys(folder: string): Buffer[] {
  const lines = (readIfThere(toKeyFile(folder)) ?? '').split('\n').filter((line) => line.trim() !== '')
  return lines.map((line) => {
    const key = Buffer.from(line.trim(), 'base64url')
    return key.length === keyBytes ? key : damaged(folder)
  })
}

/** A key of its own, so that what leaks of it says nothing of the main one. */
function derive(main: string, name: string): Buffer {
  const text = main.trim()
  const key = /^[0-9a-fA-F]{64}$/.test(text) ? Buffer.from(text, 'hex') : Buffer.from(text, 'base64')
  if (key.length !== keyBytes) {
    throw new GatewayError('request-invalid', `${name} is not a key: it must hold 32 bytes as base64 or hexadecimal`)
  }
  return Buffer.from(hkdfSync('sha256', key, 'sallyport', 'audit', keyBytes))
}

function damaged(folder: string): never {
  throw new GatewayError('storage-unavailable', `${toKeyFile(folder)} holds no key: put back the one that was there`)
}

function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw new GatewayError('storage-unavailable', `${file} cannot be read`, {}, { cause: error })
  }
}

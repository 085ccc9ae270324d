import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { GatewayError } from '../contract/errors.ts'
import { createFile } from '../lib/durable-file.ts'

const keyBytes = 32

/** The key that the record is chained with, made at the first start. */
export async function loadAuditKey(folder: string): Promise<Buffer> {
  const known = findAuditKey(folder)
  if (known) return known
  await mkdir(folder, { recursive: true, mode: 0o700 })
  await createFile(toKeyFile(folder), `${randomBytes(keyBytes).toString('base64url')}\n`)
  return findAuditKey(folder) ?? damaged(folder)
}

/** For whoever only looks: makes none. */
export function findAuditKey(folder: string): Buffer | undefined {
  const text = readIfThere(toKeyFile(folder))
  if (text === undefined) return undefined
  const key = Buffer.from(text.trim(), 'base64url')
  return key.length === keyBytes ? key : damaged(folder)
}

export function toKeyFile(folder: string): string {
  return join(folder, 'audit-key')
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

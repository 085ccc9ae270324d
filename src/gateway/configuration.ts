import { createHmac } from 'node:crypto'
import { readConfig, type Seal, type SharedConfig, toConfigError } from '../config/config.ts'
import type { AuditKeys } from '../storage/audit-key.ts'
import type { Storage } from '../storage/storage.ts'

export async function checkConfig(file: string): Promise<void> {
  const reading = await readConfig(file)
  if (!reading.ok) throw toConfigError(reading.problems)
}

/** Digests with the key of the record, which outlives a rotation of the main key. */
export function createSeal(keys: AuditKeys): Seal {
  const digest = (text: string, key: Buffer) => createHmac('sha256', key).update(`configuration ${text}`).digest('hex')
  return {
    make: (text) => digest(text, keys[0]),
    fits: (text, made) => keys.some((key) => digest(text, key) === made),
  }
}

/** Gateways on one PostgreSQL have one configuration. */
export function toSharedConfig(storage: Storage, fileIsNew: boolean): SharedConfig | undefined {
  if (storage.kind === 'sqlite') return undefined
  return {
    documents: storage.documents,
    announce: () => storage.changes.announce('config'),
    onChange: (listener) => storage.changes.on('config', listener),
    fileIsNew,
  }
}

import { createHmac } from 'node:crypto'
import { toCanonicalText } from '../lib/canonical.ts'
import type { AuditKeys } from '../storage/audit-key.ts'
import type { ConfigMarks } from '../storage/tables/config-changes.ts'
import { listParts } from './changes.ts'

/** Makes keyed digests. Without the key, a digest cannot be used to guess a value. */
export type Seal = {
  make(text: string): string
  /** Whether `made` is the digest of `text`, with the current or an earlier key. */
  fits(text: string, made: string): boolean
}

/** Digests with the key of the audit, which a rotation of the main key does not change. */
export function createSeal(keys: AuditKeys): Seal {
  const digest = (text: string, key: Buffer) => createHmac('sha256', key).update(`configuration ${text}`).digest('hex')
  return {
    make: (text) => digest(text, keys[0]),
    fits: (text, made) => keys.some((key) => digest(text, key) === made),
  }
}

/** One digest for each part of a configuration file. */
export function toMarks(value: unknown, seal: Seal): ConfigMarks {
  return Object.fromEntries(listParts(value).map(([key, part]) => [key, seal.make(toCanonicalText(part))]))
}

/** The parts of a configuration that have changed since these marks were made. */
export function listUnlike(marks: ConfigMarks, value: unknown, seal: Seal): string[] {
  const parts = new Map(listParts(value))
  const keys = new Set([...Object.keys(marks), ...parts.keys()])
  return [...keys].filter((key) => {
    const made = marks[key]
    return made === undefined || !parts.has(key) || !seal.fits(toCanonicalText(parts.get(key)), made)
  })
}

import { createHmac } from 'node:crypto'
import { toCanonicalText } from '../lib/canonical.ts'
import type { AuditKeys } from '../storage/audit-key.ts'
import type { ConfigMarks } from '../storage/tables/config-changes.ts'
import { listParts } from './changes.ts'

/** Makes keyed digests. Without the key nobody can find a value by guessing. */
export type Seal = {
  make(text: string): string
  /** Also for a digest that was made with an earlier key. */
  fits(text: string, made: string): boolean
}

/** Digests with the key of the record, which outlives a rotation of the main key. */
export function createSeal(keys: AuditKeys): Seal {
  const digest = (text: string, key: Buffer) => createHmac('sha256', key).update(`configuration ${text}`).digest('hex')
  return {
    make: (text) => digest(text, keys[0]),
    fits: (text, made) => keys.some((key) => digest(text, key) === made),
  }
}

/** One digest for each part of a configuration, as the file states it. */
export function toMarks(value: unknown, seal: Seal): ConfigMarks {
  return Object.fromEntries(listParts(value).map(([key, part]) => [key, seal.make(toCanonicalText(part))]))
}

/** The parts of a configuration that are not as they were when these marks were made. */
export function listUnlike(marks: ConfigMarks, value: unknown, seal: Seal): string[] {
  const parts = new Map(listParts(value))
  const keys = new Set([...Object.keys(marks), ...parts.keys()])
  return [...keys].filter((key) => {
    const made = marks[key]
    return made === undefined || !parts.has(key) || !seal.fits(toCanonicalText(parts.get(key)), made)
  })
}

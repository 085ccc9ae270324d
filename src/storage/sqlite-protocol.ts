import type { ErrorCode } from '../contract/errors.ts'
import type { Statement, Unit, UnitOutcome } from './unit.ts'

export type SqliteSettings = {
  /** Absolute path of the data folder. */
  readonly folder: string
  /** The instance whose entries this worker numbers. */
  readonly instance: string
  /** Most pages of 4 KiB that the database may have. */
  readonly maxPages?: number
  /** When it was opened, for the table of migrations. */
  readonly now: number
}

export type SqliteRequest =
  | { readonly kind: 'run'; readonly id: number; readonly units: readonly Unit[] }
  | { readonly kind: 'query'; readonly id: number; readonly statement: Statement }
  | { readonly kind: 'close' }

export type SqliteReply =
  | { readonly kind: 'opened' }
  | { readonly kind: 'not-opened'; readonly code: ErrorCode; readonly message: string }
  | { readonly kind: 'ran'; readonly id: number; readonly outcomes: readonly UnitOutcome[] }
  | { readonly kind: 'rows'; readonly id: number; readonly rows: readonly unknown[] }
  | { readonly kind: 'failed'; readonly id: number; readonly message: string }

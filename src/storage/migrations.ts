import { first } from './migrations/0001-first.ts'
import type { Migration } from './migrations/migration.ts'

export type { Migration } from './migrations/migration.ts'

/** Forward only: a migration that was released is never edited, the next one mends it. Times are milliseconds. */
export const migrations: readonly Migration[] = [first]

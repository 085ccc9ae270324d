import { GatewayError } from '../contract/errors.ts'
import { first } from './migrations/0001-first.ts'
import { identities } from './migrations/0002-identities.ts'
import { secrets } from './migrations/0003-secrets.ts'
import { auditChain } from './migrations/0004-audit-chain.ts'
import { pins } from './migrations/0005-pins.ts'
import { results } from './migrations/0006-results.ts'
import { severalInstances } from './migrations/0007-instances.ts'
import { questionsAndGrants } from './migrations/0008-questions-grants.ts'
import { webhooks } from './migrations/0009-webhooks.ts'
import { processMarks } from './migrations/0010-process-marks.ts'
import { pinAuthority } from './migrations/0011-pin-authority.ts'
import { callMeta } from './migrations/0012-call-meta.ts'
import { questionDrift } from './migrations/0013-question-drift.ts'
import { identityIds } from './migrations/0014-identity-ids.ts'
import { configChanges } from './migrations/0015-config-changes.ts'
import { approvals } from './migrations/0016-approvals.ts'
import { serverEntries } from './migrations/0017-server-entries.ts'
import { serverTitles } from './migrations/0018-server-titles.ts'
import { toolNames } from './migrations/0019-tool-names.ts'
import type { Migration } from './migrations/migration.ts'

export type { Migration } from './migrations/migration.ts'

/**
 * Migrations only go forward. A released migration is never edited; a later migration corrects it. Times are
 * milliseconds.
 */
export const migrations: readonly Migration[] = [
  first,
  identities,
  secrets,
  auditChain,
  pins,
  results,
  severalInstances,
  questionsAndGrants,
  webhooks,
  processMarks,
  pinAuthority,
  callMeta,
  questionDrift,
  identityIds,
  configChanges,
  approvals,
  serverEntries,
  serverTitles,
  toolNames,
]

export const migrationsTable =
  'create table if not exists migrations (id integer primary key, name text not null, applied_at bigint not null)'

/** The migrations that are not applied yet. Throws `storage-newer` if a newer version of Sallyport wrote the data. */
export function toPending(applied: readonly number[], known: readonly Migration[]): Migration[] {
  const newest = known.at(-1)?.id ?? 0
  const reached = Math.max(0, ...applied)
  if (reached > newest) {
    throw new GatewayError(
      'storage-newer',
      `The data has schema version ${reached}, but this version of Sallyport only supports up to ${newest}`,
    )
  }
  return known.filter(({ id }) => !applied.includes(id))
}

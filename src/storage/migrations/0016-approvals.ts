import type { Migration } from './migration.ts'

/** Approvals were called questions before this migration. Audit entries keep the old word, because their hashes cover it. */
export const approvals: Migration = {
  id: 16,
  name: 'approvals',
  statements: [
    'alter table questions rename to approvals',
    'alter table approvals rename column asked_at to requested_at',
    'alter table approvals rename column binding to hash',
    'drop index questions_open',
    "create index approvals_open on approvals (expires_at) where state in ('waiting', 'approved')",
    'drop index questions_by_time',
    'create index approvals_by_time on approvals (requested_at, id)',
  ],
}

import type { Migration } from './migration.ts'

export const auditChain: Migration = {
  id: 4,
  name: 'audit chain',
  statements: [
    // Empty for what was written before there was a chain.
    "alter table audit add column hash text not null default ''",
    // Calls are most of the record, and none of their entries is in here: what they cost stays the same.
    'create index audit_by_kind on audit (kind, at) where call is null',
    // On whose behalf; empty for whoever calls for himself.
    "alter table calls add column owner text not null default ''",
  ],
}

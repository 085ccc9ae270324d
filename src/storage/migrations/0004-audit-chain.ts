import type { Migration } from './migration.ts'

export const auditChain: Migration = {
  id: 4,
  name: 'audit chain',
  statements: [
    // Empty for entries that were written before the chain existed.
    "alter table audit add column hash text not null default ''",
    // Entries of calls are excluded: they are the largest part of the audit, and this index must not make them slower.
    'create index audit_by_kind on audit (kind, at) where call is null',
    // The user that the call was made for; empty if a user calls directly.
    "alter table calls add column owner text not null default ''",
  ],
}

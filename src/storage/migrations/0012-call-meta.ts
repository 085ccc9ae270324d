import type { Migration } from './migration.ts'

export const callMeta: Migration = {
  id: 12,
  name: 'call meta',
  statements: [
    'alter table calls add column meta text',
    'alter table questions add column meta text',
    'alter table questions add column meta_hash text',
    'alter table grants add column meta text',
  ],
}

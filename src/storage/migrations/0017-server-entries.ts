import type { Migration } from './migration.ts'

/** When each server entry of the configuration was first seen and last changed. `mark` is a keyed digest of the entry. */
export const serverEntries: Migration = {
  id: 17,
  name: 'server entries',
  statements: [
    `create table server_entries (
      scope text not null,
      name text not null,
      mark text not null,
      created_at bigint not null,
      updated_at bigint not null,
      primary key (scope, name)
    )`,
  ],
}

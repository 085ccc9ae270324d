import type { Migration } from './migration.ts'

export const secrets: Migration = {
  id: 3,
  name: 'secrets, the versions of their key, and how many were found in answers',
  statements: [
    `create table secrets (
      id text primary key,
      scope text not null,
      name text not null,
      ciphertext text not null,
      key_version integer not null,
      hosts text not null,
      servers text not null,
      masked integer not null,
      created_at bigint not null,
      created_by text not null,
      updated_at bigint not null,
      updated_by text not null,
      last_used_at bigint
    )`,
    'create unique index secrets_by_name on secrets (scope, name)',
    `create table secret_keys (
      version integer primary key,
      proof text not null,
      created_at bigint not null
    )`,
    'alter table calls add column masked integer',
  ],
}

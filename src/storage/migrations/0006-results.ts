import type { Migration } from './migration.ts'

export const results: Migration = {
  id: 6,
  name: 'results that were cut, keys of calls that run once',
  statements: [
    `create table results (
      id text primary key,
      principal text not null,
      form text not null,
      characters bigint not null,
      created_at bigint not null,
      used_at bigint not null
    )`,
    'create index results_by_use on results (used_at)',
    `create table result_parts (
      result text not null,
      from_at bigint not null,
      to_at bigint not null,
      text text not null,
      primary key (result, from_at)
    )`,
    `create table idempotency (
      principal text not null,
      idempotency_key text not null,
      hash text not null,
      call text not null,
      state text not null,
      response text,
      created_at bigint not null,
      expires_at bigint not null,
      primary key (principal, idempotency_key)
    )`,
    'create index idempotency_by_expiry on idempotency (expires_at)',
    'alter table calls add column given_bytes bigint',
  ],
}

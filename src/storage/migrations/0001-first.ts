import type { Migration } from './migration.ts'

export const first: Migration = {
  id: 1,
  name: 'instances, calls, audit, tokens, children, memory',
  statements: [
    `create table instances (
      id text primary key,
      started_at bigint not null,
      ended_at bigint,
      pid integer not null,
      boot_id text not null,
      host text not null
    )`,
    `create table calls (
      id text primary key,
      method text not null,
      tool text not null,
      original text not null,
      server text not null,
      scope text not null,
      connection text not null,
      principal text not null,
      surface text not null,
      risk text not null,
      state text not null,
      arguments text not null,
      decision text not null,
      error_code text,
      error_message text,
      late integer not null,
      resent integer not null,
      started_at bigint not null,
      ended_at bigint,
      duration_ms double precision,
      result_bytes bigint,
      instance text not null references instances (id)
    ) without rowid`,
    'create index calls_open on calls (instance) where ended_at is null',
    `create table audit (
      instance text not null,
      sequence bigint not null,
      at bigint not null,
      kind text not null,
      call text,
      principal text not null,
      subject text not null,
      body text not null,
      primary key (instance, sequence)
    ) without rowid`,
    'create index audit_by_time on audit (at, instance, sequence)',
    'create index audit_by_call on audit (call) where call is not null',
    `create table tokens (
      id text primary key,
      agent text not null,
      prefix text not null,
      hash text not null,
      created_at bigint not null,
      last_used_at bigint,
      expires_at bigint,
      revoked_at bigint
    )`,
    `create table children (
      pid integer not null,
      instance text not null references instances (id),
      boot_id text not null,
      start_time text not null,
      connection text not null,
      started_at bigint not null,
      primary key (instance, pid)
    )`,
    `create table memory (
      key text primary key,
      value text not null,
      updated_at bigint not null
    )`,
  ],
}

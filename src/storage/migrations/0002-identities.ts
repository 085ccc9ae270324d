import type { Migration } from './migration.ts'

/** Removed users keep their row, so that a name in the audit is not given to another user unnoticed. */
export const identities: Migration = {
  id: 2,
  name: 'users, sign-ins, agents, sessions, whose a token is',
  statements: [
    `create table users (
      name text primary key,
      role text not null,
      member_of text not null,
      password text not null,
      created_at bigint not null,
      created_by text not null,
      signed_in_at bigint,
      disabled_at bigint,
      removed_at bigint,
      revision integer not null
    )`,
    `create table sign_ins (
      id text primary key,
      hash text not null,
      user_name text not null references users (name),
      created_at bigint not null,
      last_used_at bigint not null,
      expires_at bigint not null,
      revoked_at bigint
    )`,
    'create index sign_ins_by_user on sign_ins (user_name)',
    `create table agents (
      name text primary key,
      owner text,
      description text,
      created_at bigint not null,
      created_by text,
      removed_at bigint
    )`,
    'create index agents_by_owner on agents (owner)',
    `create table sessions (
      name text primary key,
      owner text,
      agent text,
      project text,
      servers text not null,
      created_at bigint not null,
      created_by text not null,
      expires_at bigint not null,
      ended_at bigint
    )`,
    'create index sessions_by_owner on sessions (owner)',
    'insert into agents (name, created_at) select agent, min(created_at) from tokens group by agent',
    'alter table tokens rename column agent to name',
    "alter table tokens add column kind text not null default 'agent'",
    'alter table tokens add column created_by text',
  ],
}

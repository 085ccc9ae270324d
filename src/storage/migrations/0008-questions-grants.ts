import type { Migration } from './migration.ts'

export const questionsAndGrants: Migration = {
  id: 8,
  name: 'questions, grants',
  statements: [
    // `live` identifies principal and call while the question is open. It is unique, so that equal calls join one
    // question.
    `create table questions (
      id text primary key,
      live text unique,
      call text not null,
      principal text not null,
      owner text,
      tool text not null,
      server text not null,
      title text not null,
      description text,
      risk text not null,
      arguments text not null,
      input text,
      binding text not null,
      definition text not null,
      arguments_hash text not null,
      reason text not null,
      approvers text not null,
      state text not null,
      answers text not null,
      grant_id text,
      asked_at bigint not null,
      expires_at bigint not null,
      ended_at bigint,
      instance text not null
    )`,
    "create index questions_open on questions (expires_at) where state in ('waiting', 'approved')",
    'create index questions_by_time on questions (asked_at, id)',
    'create index idempotency_by_call on idempotency (call)',
    `create table grants (
      id text primary key,
      tools text not null,
      arguments text,
      exactly text,
      principal text,
      scope text,
      definitions text not null,
      budget integer not null,
      used integer not null,
      expires_at bigint not null,
      reason text,
      given_by text not null,
      given_at bigint not null,
      last_used_at bigint,
      revoked_at bigint,
      revoked_by text
    )`,
  ],
}

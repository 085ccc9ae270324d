import type { Migration } from './migration.ts'

export const pins: Migration = {
  id: 5,
  name: 'pins',
  statements: [
    `create table pins (
      server text not null,
      scope text not null,
      kind text not null,
      name text not null,
      state text not null,
      hash text,
      definition text,
      baseline integer not null,
      decided_by text,
      decided_at bigint,
      seen_hash text,
      seen_definition text,
      seen_at bigint,
      primary key (server, scope, kind, name)
    )`,
  ],
}

import type { Migration } from './migration.ts'

export const webhooks: Migration = {
  id: 9,
  name: 'webhooks',
  statements: [
    // `instance` has it under way; nobody else sends it meanwhile. `body` is sent as it stands, so that it can be signed again.
    `create table deliveries (
      id text primary key,
      endpoint text not null,
      type text not null,
      body text not null,
      state text not null,
      attempts integer not null,
      next_at bigint not null,
      instance text,
      created_at bigint not null,
      last_at bigint,
      status integer,
      error text,
      ended_at bigint
    )`,
    "create index deliveries_due on deliveries (endpoint, next_at) where state = 'waiting'",
    'create index deliveries_by_time on deliveries (endpoint, created_at, id)',
    'create index deliveries_by_state on deliveries (state, created_at, id)',
    'create index deliveries_under_way on deliveries (instance) where instance is not null',
  ],
}

import type { Migration } from './migration.ts'

export const webhooks: Migration = {
  id: 9,
  name: 'webhooks',
  statements: [
    // `instance` is the instance that is sending the delivery; others skip it. `body` is the exact text that is sent,
    // because it is signed.
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

import type { Migration } from './migration.ts'

/** What several instances on one database need of each other. */
export const severalInstances: Migration = {
  id: 7,
  name: 'leases of instances, marks of batches, documents',
  statements: [
    // By the clock of the database: when an instance last said that it lives and has read all that changed.
    'alter table instances add column renewed_at bigint',
    `create table batches (
      instance text primary key,
      number bigint not null
    )`,
    `create table documents (
      name text primary key,
      version bigint not null,
      format text not null,
      body text not null,
      updated_at bigint not null
    )`,
  ],
}

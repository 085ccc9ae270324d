import type { Migration } from './migration.ts'

/** Columns and tables for several instances on one database. */
export const severalInstances: Migration = {
  id: 7,
  name: 'leases of instances, marks of batches, documents',
  statements: [
    // When the instance last renewed its lease, by the database's clock. At that time it had read all changes.
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

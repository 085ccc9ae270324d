import type { Migration } from './migration.ts'

/** Changes of the configuration that were recorded but are not finished. */
export const configChanges: Migration = {
  id: 15,
  name: 'changes of the configuration',
  statements: [
    `create table config_changes (
      id text primary key,
      instance text not null,
      principal text not null,
      subject text not null,
      marks text not null,
      begun_at bigint not null
    )`,
  ],
}

import type { Migration } from './migration.ts'

export const pinAuthority: Migration = {
  id: 11,
  name: 'pin-authority',
  statements: [
    // An administrator's decision counts for every scope that refines a server, anybody else's for its own scope only.
    'alter table pins add column by_administrator integer not null default 0',
  ],
}

import type { Migration } from './migration.ts'

export const pinAuthority: Migration = {
  id: 11,
  name: 'pin-authority',
  statements: [
    // An administrator's decision applies to every scope that refines a server. A decision of anyone else applies to
    // its own scope only.
    'alter table pins add column by_administrator integer not null default 0',
  ],
}

import type { Migration } from './migration.ts'

/** The title that a person was shown with the approval. */
export const serverTitles: Migration = {
  id: 18,
  name: 'server titles',
  statements: ['alter table approvals add column server_title text'],
}

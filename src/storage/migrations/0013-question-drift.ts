import type { Migration } from './migration.ts'

export const questionDrift: Migration = {
  id: 13,
  name: 'question-drift',
  statements: [
    // How the tool differed from its accepted definition when the question was asked, and why a question was withdrawn.
    'alter table questions add column drift text',
    'alter table questions add column withdrawn_because text',
  ],
}

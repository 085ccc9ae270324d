import type { Migration } from './migration.ts'

export const processMarks: Migration = {
  id: 10,
  name: 'process marks of instances',
  statements: [
    // Pid namespace and start time. An instance in the same namespace can check in /proc whether the process still
    // runs.
    'alter table instances add column process text',
  ],
}

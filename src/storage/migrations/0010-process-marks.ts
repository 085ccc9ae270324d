import type { Migration } from './migration.ts'

export const processMarks: Migration = {
  id: 10,
  name: 'process marks of instances',
  statements: [
    // Pid namespace and start time: whether an instance in the same namespace still runs can be read from /proc.
    'alter table instances add column process text',
  ],
}

import { createEntryNumbers, type EntryPosition, entryColumns } from './entries.ts'
import type { Connection } from './sqlite-file.ts'
import type { NewEntry } from './unit.ts'

export type Entries = {
  /** Gives the entry the next place in this instance's record and inserts it. */
  append(entry: NewEntry): void
  position(): EntryPosition
  rewind(position: EntryPosition): void
}

export function createEntries(connection: Connection, instance: string): Entries {
  const last = connection.prepare('select coalesce(max(sequence), 0) from audit where instance = ?').pluck()
  const numbers = createEntryNumbers(instance, { sequence: Number(last.get(instance)) })
  const places = entryColumns.map(() => '?').join(', ')
  const insert = connection.prepare<unknown[]>(`insert into audit (${entryColumns.join(', ')}) values (${places})`)
  return {
    append: (entry) => void insert.run(...numbers.place(entry)),
    position: numbers.position,
    rewind: numbers.rewind,
  }
}

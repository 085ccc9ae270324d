import { createEntryNumbers, type EntryPosition, entryColumns } from '../entries.ts'
import type { NewEntry } from '../unit.ts'
import type { Connection } from './file.ts'

export type Entries = {
  /** Gives the entry the next sequence number of this instance and inserts it. */
  append(entry: NewEntry): void
  position(): EntryPosition
  rewind(position: EntryPosition): void
}

type EntriesParts = { readonly connection: Connection; readonly instance: string; readonly key: Uint8Array }

export function createEntries({ connection, instance, key }: EntriesParts): Entries {
  const head = 'select sequence, hash from audit where instance = ? order by sequence desc limit 1'
  const last = connection.prepare<[string], EntryPosition>(head).get(instance)
  const numbers = createEntryNumbers({ instance, key, last })
  const places = entryColumns.map(() => '?').join(', ')
  const insert = connection.prepare<unknown[]>(`insert into audit (${entryColumns.join(', ')}) values (${places})`)
  return {
    append: (entry) => void insert.run(...numbers.place(entry)),
    position: numbers.position,
    rewind: numbers.rewind,
  }
}

import type { Connection } from './sqlite-file.ts'
import type { NewEntry } from './unit.ts'

export type Entries = {
  /** Gives the entry the next place in this instance's record and inserts it. */
  append(entry: NewEntry): void
  /** The sequence of the last entry; `rewind` goes back to it when what came after was rolled back. */
  position(): number
  rewind(position: number): void
}

/** Only what commits takes a number, so that the record of an instance is 1, 2, 3 and so on without gaps. */
export function createEntries(connection: Connection, instance: string): Entries {
  let sequence = Number(
    connection.prepare('select coalesce(max(sequence), 0) from audit where instance = ?').pluck().get(instance),
  )
  const insert = connection.prepare(
    'insert into audit (instance, sequence, at, kind, call, principal, subject, body) values (?, ?, ?, ?, ?, ?, ?, ?)',
  )
  return {
    append(entry) {
      const next = sequence + 1
      insert.run(instance, next, entry.at, entry.kind, entry.call, entry.principal, entry.subject, entry.body)
      sequence = next
    },
    position: () => sequence,
    rewind(position) {
      sequence = position
    },
  }
}

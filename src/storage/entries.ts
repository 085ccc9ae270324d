import type { NewEntry } from './unit.ts'

/** Where the record of an instance ends. */
export type EntryPosition = { readonly sequence: number }

/** Gives entries their places in the record of one instance; each database inserts them in its own way. */
export type EntryNumbers = {
  /** The next place is this entry's: the values of its row, in the order of `entryColumns`. */
  place(entry: NewEntry): unknown[]
  position(): EntryPosition
  /** Goes back to a position when what came after it was rolled back. */
  rewind(position: EntryPosition): void
}

export const entryColumns = ['instance', 'sequence', 'at', 'kind', 'call', 'principal', 'subject', 'body'] as const

/** Only what commits takes a number, so that the record of an instance is 1, 2, 3 and so on without gaps. */
export function createEntryNumbers(instance: string, last: EntryPosition): EntryNumbers {
  let position = last
  return {
    place({ at, kind, call, principal, subject, body }) {
      position = { sequence: position.sequence + 1 }
      return [instance, position.sequence, at, kind, call, principal, subject, body]
    },
    position: () => position,
    rewind(to) {
      position = to
    },
  }
}

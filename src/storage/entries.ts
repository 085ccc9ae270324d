import { linkEntry, toChainKey } from './chain.ts'
import type { NewEntry } from './unit.ts'

/** Where the record of an instance ends: its last entry, and the hash that the next one builds on. */
export type EntryPosition = { readonly sequence: number; readonly hash: string }

/** Gives entries their places in the record of one instance; each database inserts them in its own way. */
export type EntryNumbers = {
  /** The next place is this entry's: the values of its row, in the order of `entryColumns`. */
  place(entry: NewEntry): unknown[]
  position(): EntryPosition
  /** Goes back to a position when what came after it was rolled back. */
  rewind(position: EntryPosition): void
}

export const entryColumns = [
  'instance',
  'sequence',
  'at',
  'kind',
  'call',
  'principal',
  'subject',
  'body',
  'hash',
] as const

type EntryNumbersParts = {
  readonly instance: string
  /** The key that chains the entries. */
  readonly key: Uint8Array
  readonly last: EntryPosition | undefined
}

/** Only what commits takes a number, so that the record of an instance is 1, 2, 3 and so on without gaps. */
export function createEntryNumbers({ instance, key, last }: EntryNumbersParts): EntryNumbers {
  const secret = toChainKey(key)
  let position = last ?? { sequence: 0, hash: '' }
  return {
    place({ at, kind, call, principal: by, subject: on, body }) {
      // Half a surrogate comes back from the disk as something else, and would not fit its hash.
      const [principal, subject] = [by.toWellFormed(), on.toWellFormed()]
      const sequence = position.sequence + 1
      const entry = { instance, sequence, at, kind, call, principal, subject, body }
      const hash = linkEntry(secret, position.hash, entry)
      position = { sequence, hash }
      return [instance, sequence, at, kind, call, principal, subject, body, hash]
    },
    position: () => position,
    rewind(to) {
      position = to
    },
  }
}

import { linkEntry, toChainKey } from './chain.ts'
import type { NewEntry } from './unit.ts'

/** The last entry of an instance's chain: its sequence number, and the hash that the next entry is linked to. */
export type EntryPosition = { readonly sequence: number; readonly hash: string }

/** Numbers and chains the entries of one instance. Each database inserts them in its own way. */
export type EntryNumbers = {
  /** Gives the entry the next sequence number. Returns the values of its row, in the order of `entryColumns`. */
  place(entry: NewEntry): unknown[]
  position(): EntryPosition
  /** Returns to an earlier position after a rollback. */
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

/** Only committed entries use a number, so that the entries of an instance are numbered 1, 2, 3 without gaps. */
export function createEntryNumbers({ instance, key, last }: EntryNumbersParts): EntryNumbers {
  const secret = toChainKey(key)
  let position = last ?? { sequence: 0, hash: '' }
  return {
    place({ at, kind, call, principal: by, subject: on, body }) {
      // A lone surrogate is stored as another character, so the hash would not match after reading.
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

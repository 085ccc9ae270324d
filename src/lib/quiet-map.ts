export type QuietMap<Entry> = {
  find(key: string): Entry | undefined
  add(key: string, entry: Entry, now: number): Entry
}

/** Smaller maps are not searched for idle entries. */
const fewEntries = 1000

/** A map that removes idle entries while it grows, because principals and connections come and go. */
export function createQuietMap<Entry>(idle: (entry: Entry, now: number) => boolean): QuietMap<Entry> {
  const entries = new Map<string, Entry>()
  let sweepAt = fewEntries
  return {
    find: (key) => entries.get(key),
    add(key, added, now) {
      if (entries.size >= sweepAt) {
        for (const [other, entry] of entries) if (idle(entry, now)) entries.delete(other)
        sweepAt = Math.max(fewEntries, entries.size * 2)
      }
      entries.set(key, added)
      return added
    },
  }
}

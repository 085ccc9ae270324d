export type QuietMap<Entry> = {
  find(key: string): Entry | undefined
  add(key: string, entry: Entry, now: number): Entry
}

/** Below this many nobody looks whether some are idle. */
const fewEntries = 1000

/** Principals and connections come and go; those that were quiet for a minute leave no trace. */
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

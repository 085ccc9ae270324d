import type { GalleryEntry } from '../contract/gallery.ts'

/** The entries that contain every word of the text. Matches in the id come first, then matches in the title. */
export function search<Entry extends GalleryEntry>(entries: readonly Entry[], text: string): Entry[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  const matching = entries.filter((entry) => {
    const { id, title, purpose, vendor = '', category } = entry
    const all = [id, title, purpose, vendor, category].join('\n').toLowerCase()
    return words.every((word) => all.includes(word))
  })
  return matching
    .map((entry) => ({ entry, rank: rankOf(entry, words) }))
    .sort((one, other) => one.rank - other.rank || compare(one.entry.id, other.entry.id))
    .map(({ entry }) => entry)
}

function rankOf({ id, title }: GalleryEntry, words: readonly string[]): number {
  if (words.includes(id)) return 0
  if (words.some((word) => id.includes(word))) return 1
  return words.some((word) => title.toLowerCase().includes(word)) ? 2 : 3
}

function compare(one: string, other: string): number {
  if (one === other) return 0
  return one < other ? -1 : 1
}

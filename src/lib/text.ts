import { stripVTControlCharacters } from 'node:util'
import { toVisible } from '../shared/visible.ts'

/** Output of a program without colours and control characters, safe to print on a terminal. */
export function toPlainLine(line: string): string {
  return toVisible(stripVTControlCharacters(line).replace(/\r$/, ''))
}

/** The known word that is most similar to a mistyped word; undefined if none is similar enough. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const limit = Math.max(1, Math.floor(word.length / 3))
  let best: string | undefined
  let bestDistance = limit + 1
  for (const candidate of known) {
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase(), bestDistance)
    if (distance < bestDistance) {
      best = candidate
      bestDistance = distance
    }
  }
  return best
}

/** Insertions, deletions, changed letters and swapped neighbours cost 1 each. */
function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) >= limit) return limit
  let before: number[] = []
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const change = (previous[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      const swapped = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? (before[j - 2] ?? limit) + 1 : limit
      row.push(Math.min((previous[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, change, swapped))
    }
    before = previous
    previous = row
  }
  return previous[b.length] ?? limit
}

/** Whether a cut at this position would split a surrogate pair. */
export function splitsPair(text: string, at: number): boolean {
  const before = text.charCodeAt(at - 1)
  const after = text.charCodeAt(at)
  return before >= 0xd800 && before <= 0xdbff && after >= 0xdc00 && after <= 0xdfff
}

/**
 * The end of a piece that should end at `to`, moved so that no surrogate pair is split. A piece has at least one
 * character, so that paging always advances.
 */
export function wholeEnd(text: string, from: number, to: number): number {
  const end = Math.min(to, text.length)
  if (!splitsPair(text, end)) return end
  return end - 1 > from ? end - 1 : end + 1
}

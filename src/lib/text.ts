import { stripVTControlCharacters } from 'node:util'
import { toVisible } from '../shared/visible.ts'

/** What a program printed, for people: without colours, and with nothing left that a terminal would obey. */
export function toPlainLine(line: string): string {
  return toVisible(stripVTControlCharacters(line).replace(/\r$/, ''))
}

/** The known word nearest to a mistyped one, if any is near enough to be meant. */
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

/** Insertions, deletions, changed letters and swapped neighbours count one each. */
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

/** Whether a cut at this place would take a character apart, one of those that JavaScript counts as two. */
export function splitsPair(text: string, at: number): boolean {
  const before = text.charCodeAt(at - 1)
  const after = text.charCodeAt(at)
  return before >= 0xd800 && before <= 0xdbff && after >= 0xdc00 && after <= 0xdfff
}

/** Where a piece that should end at `to` ends with a whole character; it has one at least, so that pages come to an end. */
export function wholeEnd(text: string, from: number, to: number): number {
  const end = Math.min(to, text.length)
  if (!splitsPair(text, end)) return end
  return end - 1 > from ? end - 1 : end + 1
}

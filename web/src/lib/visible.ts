import { findMarks, markReasons, toMarkText } from '../../../src/shared/marks.ts'
import { findBlankRuns } from '../../../src/shared/size.ts'
import { toVisible } from '../../../src/shared/visible.ts'

/** A piece of text as it is, or something that is drawn as a mark. */
export type Piece = {
  readonly text: string
  readonly mark?: string
  readonly why?: string
  /**
   * `apart`: written from right to left, and kept apart so that what stands beside it stays in its order. `forced`: every
   * character in its place.
   */
  readonly order?: 'apart' | 'forced'
}

/** Each mark is an element of the page. A text with more of them is hostile, and its rest is shown with plain marks. */
const mostMarks = 2000

export function toPieces(text: string): Piece[] {
  const found = [
    ...findMarks(text).map((mark) => {
      return { index: mark.index, text: mark.character, mark: toMarkText(mark), why: markReasons[mark.kind] }
    }),
    ...findBlankRuns(text).map(({ index, text: run, words }) => {
      return { index, text: run, mark: words, why: 'Blanks that would push the rest out of sight' }
    }),
  ].sort((left, right) => left.index - right.index)
  const pieces: Piece[] = []
  let end = 0
  for (const { index, ...piece } of found.slice(0, mostMarks)) {
    if (index < end) continue
    if (index > end) pieces.push(...inOrder(text.slice(end, index)))
    pieces.push(piece)
    end = index + piece.text.length
  }
  const rest = text.slice(end)
  return [...pieces, ...inOrder(found.length > mostMarks ? toVisible(rest) : rest)]
}

/** Each is an element too, and browsers are slow with many of them in one text. */
const mostApart = 200

/** Words of letters that are written from right to left. */
const rightToLeft = '\\u0590-\\u08ff\\ufb1d-\\ufdff\\ufe70-\\ufefc\\u{10800}-\\u{10fff}\\u{1e800}-\\u{1efff}'
const words = new RegExp(`[${rightToLeft}](?:[${rightToLeft} ,]*[${rightToLeft}])?`, 'gu')

/** Numbers, slashes and comparisons beside such words would be drawn in another order than they are sent. */
function inOrder(text: string): Piece[] {
  const pieces: Piece[] = []
  let end = 0
  for (const { index, 0: word } of text.matchAll(words)) {
    if (index > end) pieces.push({ text: text.slice(end, index) })
    if (pieces.length > mostApart) return [...pieces, { text: text.slice(index), order: 'forced' }]
    pieces.push({ text: word, order: 'apart' })
    end = index + word.length
  }
  return end < text.length ? [...pieces, { text: text.slice(end) }] : pieces
}

import { findMarks, markReasons, toMarkText } from '../../../src/shared/marks.ts'
import { findBlankRuns } from '../../../src/shared/size.ts'
import { toVisible } from '../../../src/shared/visible.ts'

/** A piece of text, or a character that is drawn as a mark. */
export type Piece = {
  readonly text: string
  readonly mark?: string
  readonly why?: string
  /**
   * `apart`: right-to-left text, isolated so that the text next to it keeps its order. `forced`: drawn from left to right,
   * character by character.
   */
  readonly order?: 'apart' | 'forced'
}

/** Each mark is an element of the page. A text with more marks is hostile; the rest of it gets marks as plain text. */
const mostMarks = 2000

export function toPieces(text: string): Piece[] {
  const found = [
    ...findMarks(text).map((mark) => {
      return { index: mark.index, text: mark.character, mark: toMarkText(mark), why: markReasons[mark.kind] }
    }),
    ...findBlankRuns(text).map(({ index, text: run, words }) => {
      return { index, text: run, mark: words, why: 'Blanks that would push the following text out of view' }
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

/** Maximum isolated pieces: each is an element, and browsers are slow with many elements in one text. */
const mostApart = 200

/** Ranges of right-to-left letters. */
const rightToLeft = '\\u0590-\\u08ff\\ufb1d-\\ufdff\\ufe70-\\ufefc\\u{10800}-\\u{10fff}\\u{1e800}-\\u{1efff}'
const words = new RegExp(`[${rightToLeft}](?:[${rightToLeft} ,]*[${rightToLeft}])?`, 'gu')

/** Isolates right-to-left words: browsers would reorder numbers, slashes and signs next to them. */
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

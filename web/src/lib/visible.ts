import { findMarks, markReasons, toMarkText } from '../../../src/text/marks.ts'
import { findBlankRuns } from '../../../src/text/size.ts'
import { toVisible } from '../../../src/text/visible.ts'

/** A piece of text as it is, or something that is drawn as a mark. */
export type Piece = { readonly text: string; readonly mark?: string; readonly why?: string }

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
    if (index > end) pieces.push({ text: text.slice(end, index) })
    pieces.push(piece)
    end = index + piece.text.length
  }
  if (end < text.length) pieces.push({ text: found.length > mostMarks ? toVisible(text.slice(end)) : text.slice(end) })
  return pieces
}

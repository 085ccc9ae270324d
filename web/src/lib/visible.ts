import { findMarks, markReasons, toMarkText } from '../../../src/text/marks.ts'

/** A piece of text as it is, or a character that is drawn as a mark. */
export type Piece = { readonly text: string; readonly mark?: string; readonly why?: string }

export function toPieces(text: string): Piece[] {
  const pieces: Piece[] = []
  let end = 0
  for (const mark of findMarks(text)) {
    if (mark.index > end) pieces.push({ text: text.slice(end, mark.index) })
    pieces.push({ text: mark.character, mark: toMarkText(mark), why: markReasons[mark.kind] })
    end = mark.index + mark.character.length
  }
  if (end < text.length) pieces.push({ text: text.slice(end) })
  return pieces
}

/** A piece of text as it is, or one character that cannot be seen and is therefore drawn as its code point. */
export type Piece = { readonly text: string; readonly hidden?: string }

/**
 * Control characters but line feed and tab, directions and joiners, spaces that are not the space, line separators,
 * tags and variation selectors: what can be there without being seen, or can make text look like another.
 */
const ranges = [
  [0x00, 0x08],
  [0x0b, 0x1f],
  [0x7f, 0xa0],
  [0xad, 0xad],
  [0x34f, 0x34f],
  [0x61c, 0x61c],
  [0x115f, 0x1160],
  [0x1680, 0x1680],
  [0x17b4, 0x17b5],
  [0x180b, 0x180f],
  [0x2000, 0x200f],
  [0x2028, 0x202f],
  [0x205f, 0x206f],
  [0x2800, 0x2800],
  [0x3000, 0x3000],
  [0x3164, 0x3164],
  [0xd800, 0xdfff],
  [0xfe00, 0xfe0f],
  [0xfeff, 0xfeff],
  [0xffa0, 0xffa0],
  [0xfff0, 0xffff],
  [0xe0000, 0xe0fff],
] as const

export function toPieces(text: string): Piece[] {
  const pieces: Piece[] = []
  let plain = ''
  for (const character of text) {
    if (!isHidden(character.codePointAt(0) ?? 0)) {
      plain += character
      continue
    }
    if (plain !== '') pieces.push({ text: plain })
    pieces.push({ text: character, hidden: toCodePoint(character) })
    plain = ''
  }
  if (plain !== '') pieces.push({ text: plain })
  return pieces
}

function isHidden(code: number): boolean {
  if (code === 0x20 || (code > 0x20 && code < 0x7f)) return false
  return ranges.some(([from, to]) => code >= from && code <= to)
}

function toCodePoint(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`
}

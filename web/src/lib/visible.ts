/** A piece of text as it is, or a character that is marked: it cannot be seen, or is not the letter it looks like. */
export type Piece = { readonly text: string; readonly mark?: string; readonly why?: string }

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

const unseen = new RegExp(`[${ranges.map(([from, to]) => `\\u{${toHex(from)}}-\\u{${toHex(to)}}`).join('')}]`, 'gu')
const word = /\p{L}+/gu
const latin = /\p{Script=Latin}/u
/** Scripts with letters that are drawn like Latin ones, and letters made for formulas. */
const lookAlike = /[\p{Script=Cyrillic}\p{Script=Greek}\p{Script=Armenian}\p{Script=Cherokee}\u{1d400}-\u{1d7ff}]/u

type Found = { readonly index: number; readonly character: string; readonly mark: string; readonly why: string }

export function toPieces(text: string): Piece[] {
  const found = [...findUnseen(text), ...findLookAlikes(text)].sort((left, right) => left.index - right.index)
  const pieces: Piece[] = []
  let end = 0
  for (const { index, character, mark, why } of found) {
    if (index > end) pieces.push({ text: text.slice(end, index) })
    pieces.push({ text: character, mark, why })
    end = index + character.length
  }
  if (end < text.length) pieces.push({ text: text.slice(end) })
  return pieces
}

function findUnseen(text: string): Found[] {
  return [...text.matchAll(unseen)].map(({ index, 0: character }) => {
    return { index, character, mark: toCodePoint(character), why: 'This character cannot be seen' }
  })
}

/** Another alphabet is nothing to hide; one of its letters among Latin ones is. */
function findLookAlikes(text: string): Found[] {
  if (!lookAlike.test(text)) return []
  const mixed = [...text.matchAll(word)].filter(([letters]) => latin.test(letters) && lookAlike.test(letters))
  return mixed.flatMap(({ index: start, 0: letters }) => {
    let index = start
    return [...letters].flatMap((character): Found[] => {
      const at = index
      index += character.length
      if (!lookAlike.test(character)) return []
      const mark = `${character} ${toCodePoint(character)}`
      return [{ index: at, character, mark, why: 'This letter looks like another one' }]
    })
  })
}

function toCodePoint(character: string): string {
  return `U+${toHex(character.codePointAt(0) ?? 0).padStart(4, '0')}`
}

function toHex(code: number): string {
  return code.toString(16).toUpperCase()
}

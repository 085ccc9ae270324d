/** Code points that a person does not see and a model reads all the same: from and to, in order. */
const invisible: readonly (readonly [number, number])[] = [
  [0x00, 0x08],
  [0x0b, 0x0c],
  [0x0e, 0x1f],
  [0x7f, 0x9f],
  [0xad, 0xad],
  [0x34f, 0x34f],
  [0x61c, 0x61c],
  [0x115f, 0x1160],
  [0x17b4, 0x17b5],
  [0x180e, 0x180e],
  [0x200b, 0x200b],
  [0x200e, 0x200f],
  [0x2028, 0x202e],
  [0x2060, 0x206f],
  [0x3164, 0x3164],
  [0xfeff, 0xfeff],
  [0xffa0, 0xffa0],
  [0xfff9, 0xfffb],
  [0xe0000, 0xe00ff],
  [0xe01f0, 0xe0fff],
]
/** One of these belongs to a picture sign or to a script; several in a row carry something. */
const joining: readonly (readonly [number, number])[] = [
  [0x200c, 0x200d],
  [0xfe00, 0xfe0f],
  [0xe0100, 0xe01ef],
]

/** Letters of two alphabets in one word look like a word of one; so do letters with nothing visible between them. */
const mixedAlphabets = /[a-z][\u0400-\u04ff]|[\u0400-\u04ff][a-z]/i
const joinedLetters = /[a-z0-9](?:\u200c|\u200d)[a-z0-9]/i

const longNothing = 100

export function findHidden(text: string): string | undefined {
  let joiners = 0
  let nothing = 0
  let isPlain = true
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    const code = unit >= 0xd800 && unit <= 0xdbff ? (text.codePointAt(at) ?? unit) : unit
    if (code > 0xffff) at++
    // What stands far to the right or far below is out of sight.
    if (isBlank(code)) nothing++
    else if (nothing >= longNothing) return 'it has text after a long stretch of nothing'
    else nothing = 0
    if (code >= 0x20 && code < 0x7f) {
      joiners = 0
      continue
    }
    isPlain = false
    if (isIn(invisible, code)) return `it holds the invisible character ${toCode(code)}`
    joiners = isIn(joining, code) ? joiners + 1 : 0
    if (joiners > 1) return 'it holds a row of invisible characters'
  }
  if (isPlain) return undefined
  if (joinedLetters.test(text)) return 'it holds an invisible character within a word'
  return mixedAlphabets.test(text) ? 'it mixes alphabets within one word' : undefined
}

function isIn(ranges: readonly (readonly [number, number])[], code: number): boolean {
  return ranges.some(([from, to]) => code >= from && code <= to)
}

/** Blank on a screen, but not worth hiding a tool for where it stands alone. */
function isBlank(code: number): boolean {
  return code === 32 || (code >= 9 && code <= 13) || code === 0xa0 || code === 0x2800 || code === 0x3000
}

function toCode(code: number): string {
  return `U+${code.toString(16).toUpperCase().padStart(4, '0')}`
}

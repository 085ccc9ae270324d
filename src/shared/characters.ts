import { emojiEnd } from './emoji.ts'

/**
 * Characters that are drawn as nothing or as a blank, or that change how the characters around them are drawn. The list
 * uses Unicode properties, so it follows new versions of Unicode: control, format, private use, unassigned and
 * noncharacter code points, lone surrogates, separators, default-ignorable code points and variation selectors. The
 * single code points after the properties have a visible category but are blank in every font. The last group is
 * excluded: space, line feed and tab are ordinary text, and the number signs of Arabic and other scripts are visible
 * format characters.
 */
const unseen =
  /[[\p{C}\p{Z}\p{White_Space}\p{Default_Ignorable_Code_Point}\p{Variation_Selector}\u2800\ufffc\u{13441}\u{13442}\u{16fe4}\u{1d159}]--[ \n\t\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u{110bd}\u{110cd}]]/v
const blank = /[\p{Zs}\u2800]/u
/** Unassigned code points are drawn as a box. They may be emoji that are newer than this program. */
const unassigned = /[\p{Cn}--[\p{Noncharacter_Code_Point}\p{Default_Ignorable_Code_Point}]]/v
const combining = /\p{M}/u
const enclosing = /\p{Me}/u
const inherited = /\p{Script=Inherited}/u
const base = /[\p{L}\p{N}\p{S}]/u
const plainBase = /[\p{Script=Latin}\p{Script=Common}]/u
/** Vietnamese and Hebrew put two or three combining characters on one letter. More of them would cover the lines around. */
const mostCombining = 3

export type UnseenKind = 'invisible' | 'blank' | 'unassigned' | 'stacked'
export type Unseen = { readonly index: number; readonly character: string; readonly kind: UnseenKind }

/**
 * Every invisible or blank character, except inside an emoji. Also every combining character that has no letter before
 * it, belongs to another script, or exceeds `mostCombining`. Linear in the length of the text.
 */
export function* eachUnseen(text: string): Generator<Unseen> {
  const state = { unknownEmoji: 0 }
  let before = ''
  let stack = 0
  for (let index = 0; index < text.length; ) {
    const code = text.codePointAt(index) ?? 0
    const end = emojiEnd(text, index, state)
    const character = end > index ? '' : String.fromCodePoint(code)
    const kind = character === '' || isPlain(code) ? 'seen' : classOf(code, character)
    if (kind === 'combining') {
      stack += 1
      if (isMisplaced(character, before, stack)) yield { index, character, kind: 'stacked' }
    } else {
      stack = 0
      before = kind === 'unseen' ? '' : character === '' ? text.slice(index, end) : character
    }
    if (kind === 'unseen') yield { index, character, kind: kindOf(character, text[index + 1]) }
    index = end > index ? end : index + character.length
  }
}

/** Spaces of every width, which are drawn as a gap between words. */
export function isBlank(code: number): boolean {
  if (code < 128) return code === 0x20
  return blank.test(String.fromCharCode(code))
}

function isPlain(code: number): boolean {
  return (code >= 0x20 && code < 0x7f) || code === 0x0a || code === 0x09
}

type Class = 'seen' | 'unseen' | 'combining'
const classes: readonly Class[] = ['seen', 'unseen', 'combining']
/** Caches the class of each code point in one byte. 0: not computed yet. */
let known: Uint8Array | undefined

function classOf(code: number, character: string): Class {
  known ??= new Uint8Array(0x110000)
  const place = known[code] ?? 0
  if (place > 0) return classes[place - 1] ?? 'unseen'
  const found: Class = unseen.test(character) ? 'unseen' : combining.test(character) ? 'combining' : 'seen'
  known[code] = classes.indexOf(found) + 1
  return found
}

/**
 * A carriage return before a line feed is a Windows line break. A single carriage return can overwrite a line in a
 * terminal.
 */
function kindOf(character: string, next: string | undefined): UnseenKind {
  if (blank.test(character) || (character === '\r' && next === '\n')) return 'blank'
  return unassigned.test(character) ? 'unassigned' : 'invisible'
}

function isMisplaced(character: string, before: string, count: number): boolean {
  if (count > mostCombining || enclosing.test(character) || !base.test(before)) return true
  return plainBase.test(before) && !inherited.test(character)
}

export function combiningAt(text: string, index: number): string | undefined {
  const code = text.codePointAt(index)
  if (code === undefined || code < 0x300) return undefined
  const character = String.fromCodePoint(code)
  return combining.test(character) ? character : undefined
}

export function characterBefore(text: string, index: number): string {
  const code = index >= 2 ? text.codePointAt(index - 2) : undefined
  if (code !== undefined && code > 0xffff) return String.fromCodePoint(code)
  return index > 0 ? text.charAt(index - 1) : ''
}

/** `U+0430` */
export function toCodePoint(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`
}

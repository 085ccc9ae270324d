import { characterBefore, isBlank, toCodePoint } from '../shared/characters.ts'
import { eachMark, type Mark } from '../shared/marks.ts'

const longNothing = 100

/** Text that a person does not see and a model reads all the same. The list of characters is that of page and terminal. */
export function findHidden(text: string): string | undefined {
  if (hasLongNothing(text)) return 'it has text after a long stretch of nothing'
  let selectors = 0
  for (const mark of eachMark(text)) {
    const reason = toReason(mark, text)
    if (reason !== undefined) return reason
    if (isSelector.test(mark.character) && ++selectors > mostSelectors) return 'it holds many variation selectors'
  }
  return undefined
}

/** A rare name needs one or two. Each could carry four bits that a model reads and nobody sees. */
const mostSelectors = 8
const isSelector = /\p{Variation_Selector}/u

/** Text far to the right or far below is out of sight. */
function hasLongNothing(text: string): boolean {
  let nothing = 0
  for (let at = 0; at < text.length; at++) {
    if (isNothing(text.charCodeAt(at))) nothing++
    else if (nothing >= longNothing) return true
    else nothing = 0
  }
  return false
}

/** Unusual spaces and characters of a newer Unicode are no reason to set a tool aside. */
function toReason({ index, character, kind, ofScience }: Mark, text: string): string | undefined {
  if (kind === 'blank' || kind === 'unassigned' || ofScience) return undefined
  if (kind === 'look-alike') return 'it mixes alphabets within one word, or uses letters that look like others'
  if (kind === 'stacked') return `it has the combining character ${toCodePoint(character)} out of place`
  const around = { before: characterBefore(text, index), after: text.charAt(index + character.length) }
  return isProper(character, around) ? undefined : `it holds the invisible character ${toCodePoint(character)}`
}

const joiner = /[\u200c\u200d]/
/** Scripts that are written with joiners. */
const joiningScript =
  /[\p{Script=Arabic}\p{Script=Syriac}\p{Script=Mongolian}\p{Script=Devanagari}\p{Script=Bengali}\p{Script=Gurmukhi}\p{Script=Gujarati}\p{Script=Oriya}\p{Script=Tamil}\p{Script=Telugu}\p{Script=Kannada}\p{Script=Malayalam}\p{Script=Sinhala}\p{Script=Khmer}\p{Script=Myanmar}\p{Script=Tibetan}\p{Mn}\p{Mc}]/u
const selectorOfSymbol = /[\ufe0e\ufe0f]/
const selectorOfHan = /[\ufe00-\ufe02\u{e0100}-\u{e010f}]/u

/** One joiner inside a word of such a script, and one selector behind a symbol or an ideograph, change how it is drawn. */
function isProper(character: string, { before, after }: { before: string; after: string }): boolean {
  if (joiner.test(character)) return joiningScript.test(before) && joiningScript.test(after)
  if (selectorOfSymbol.test(character)) return /\p{S}/u.test(before)
  return selectorOfHan.test(character) && /\p{Script=Han}/u.test(before)
}

function isNothing(code: number): boolean {
  return (code >= 9 && code <= 13) || isBlank(code)
}

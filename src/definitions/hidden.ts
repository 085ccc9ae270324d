import { characterBefore, isBlank, toCodePoint } from '../shared/characters.ts'
import { eachMark, type Mark } from '../shared/marks.ts'

const longBlank = 100

/** Finds text that is invisible to people but read by a model, with the character list of the dashboard and the CLI. */
export function findHidden(text: string): string | undefined {
  if (hasLongBlank(text)) return 'its text continues after a long run of blank characters'
  let selectors = 0
  for (const mark of eachMark(text)) {
    const reason = toReason(mark, text)
    if (reason !== undefined) return reason
    if (isSelector.test(mark.character) && ++selectors > mostSelectors)
      return 'its text contains many variation selectors'
  }
  return undefined
}

/** Rare names need one or two. Each selector can carry four bits of hidden text. */
const mostSelectors = 8
const isSelector = /\p{Variation_Selector}/u

/** Text far to the right or far below is outside the visible area. */
function hasLongBlank(text: string): boolean {
  let blanks = 0
  for (let at = 0; at < text.length; at++) {
    if (isBlankOrBreak(text.charCodeAt(at))) blanks++
    else if (blanks >= longBlank) return true
    else blanks = 0
  }
  return false
}

/** Unusual spaces and characters of newer Unicode versions are accepted. */
function toReason({ index, character, kind, ofScience }: Mark, text: string): string | undefined {
  if (kind === 'blank' || kind === 'unassigned' || ofScience) return undefined
  if (kind === 'look-alike') return 'its text mixes alphabets within one word, or uses look-alike letters'
  if (kind === 'stacked')
    return `its text contains the combining character ${toCodePoint(character)} in an unusual place`
  const around = { before: characterBefore(text, index), after: text.charAt(index + character.length) }
  return isProper(character, around) ? undefined : `its text contains the invisible character ${toCodePoint(character)}`
}

const joiner = /[\u200c\u200d]/
/** Scripts that are written with joiners. */
const joiningScript =
  /[\p{Script=Arabic}\p{Script=Syriac}\p{Script=Mongolian}\p{Script=Devanagari}\p{Script=Bengali}\p{Script=Gurmukhi}\p{Script=Gujarati}\p{Script=Oriya}\p{Script=Tamil}\p{Script=Telugu}\p{Script=Kannada}\p{Script=Malayalam}\p{Script=Sinhala}\p{Script=Khmer}\p{Script=Myanmar}\p{Script=Tibetan}\p{Mn}\p{Mc}]/u
const selectorOfSymbol = /[\ufe0e\ufe0f]/
const selectorOfHan = /[\ufe00-\ufe02\u{e0100}-\u{e010f}]/u

/** A joiner inside a word of such a script and a selector after a symbol or ideograph are legitimate. */
function isProper(character: string, { before, after }: { before: string; after: string }): boolean {
  if (joiner.test(character)) return joiningScript.test(before) && joiningScript.test(after)
  if (selectorOfSymbol.test(character)) return /\p{S}/u.test(before)
  return selectorOfHan.test(character) && /\p{Script=Han}/u.test(before)
}

function isBlankOrBreak(code: number): boolean {
  return (code >= 9 && code <= 13) || isBlank(code)
}

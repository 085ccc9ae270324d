import { combiningAt, eachUnseen, toCodePoint } from './characters.ts'
import { findLookAlikes } from './look-alikes.ts'
import { countOf } from './words.ts'

/**
 * Why a character is marked. `invisible`: drawn as nothing. `blank`: drawn as a space. `unassigned`: drawn as a box.
 * `stacked`: drawn over other characters. `look-alike`: drawn like another letter.
 */
export type MarkKind = 'invisible' | 'blank' | 'unassigned' | 'stacked' | 'look-alike'

/** A character that a reader would not recognise, and its position in the text. */
export type Mark = {
  readonly index: number
  readonly character: string
  readonly kind: MarkKind
  /** A Greek letter that is written next to Latin letters in scientific names. */
  readonly ofScience?: true
}

const plain = /^[ -~\n\t]*$/

/** The characters that page, terminal and the check of tool descriptions mark, in the order of the text. */
export function findMarks(text: string): Mark[] {
  const found = [...eachMark(text)].sort((left, right) => left.index - right.index)
  const marks: Mark[] = []
  let end = 0
  for (const mark of found) {
    if (mark.index < end) continue
    marks.push(mark)
    end = mark.index + mark.character.length
    // An accent after a marked character would be drawn on top of the mark.
    for (let accent = combiningAt(text, end); accent !== undefined; accent = combiningAt(text, end)) {
      marks.push({ index: end, character: accent, kind: 'stacked' })
      end += accent.length
    }
  }
  return marks
}

/** The same characters in the order of detection: invisible characters first. For callers that stop at the first mark. */
export function* eachMark(text: string): Generator<Mark> {
  if (plain.test(text)) return
  yield* eachUnseen(text)
  for (const { index, character, ofScience } of findLookAlikes(text))
    yield { index, character, kind: 'look-alike', ...(ofScience && { ofScience }) }
}

export const markReasons: Readonly<Record<MarkKind, string>> = {
  invisible: 'This character is invisible',
  blank: 'This is not an ordinary space or line end',
  unassigned: 'This character is not assigned in Unicode',
  stacked: 'This character is drawn over other characters',
  'look-alike': 'This character looks like another character',
}

/** `U+200B` for an invisible character, `а U+0430` for a look-alike. */
export function toMarkText({ kind, character }: Mark): string {
  return kind === 'look-alike' ? `${character} ${toCodePoint(character)}` : toCodePoint(character)
}

/**
 * Marks that a person must see before trusting the text. Unusual spaces and line breaks (`blank`) are shown without a
 * warning.
 */
export type Warnings = { readonly invisible: number; readonly lookAlike: number }

export function countWarnings(texts: Iterable<string>): Warnings {
  let [invisible, lookAlike] = [0, 0]
  for (const text of texts) {
    for (const { kind } of findMarks(text)) {
      if (kind === 'look-alike') lookAlike += 1
      else if (kind !== 'blank') invisible += 1
    }
  }
  return { invisible, lookAlike }
}

/** `2 invisible characters and 1 character that looks like another one`; undefined if there are no warnings. */
export function describeWarnings({ invisible, lookAlike }: Warnings): string | undefined {
  const parts = [
    ...(invisible > 0 ? [countOf(invisible, 'invisible character')] : []),
    ...(lookAlike > 0
      ? [countOf(lookAlike, 'character that looks like another one', 'characters that look like others')]
      : []),
  ]
  return parts.length === 0 ? undefined : parts.join(' and ')
}

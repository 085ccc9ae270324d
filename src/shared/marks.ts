import { combiningAt, eachUnseen, toCodePoint } from './characters.ts'
import { findLookAlikes } from './look-alikes.ts'

/**
 * Why a character is marked: it is drawn as nothing, as a blank, as an unknown box, on top of other characters, or as
 * another letter.
 */
export type MarkKind = 'invisible' | 'blank' | 'unassigned' | 'stacked' | 'look-alike'

/** A character that a person would not recognise for what it is, and where it is in the text. */
export type Mark = {
  readonly index: number
  readonly character: string
  readonly kind: MarkKind
  /** A Greek letter that names of science put beside Latin letters. */
  readonly ofScience?: true
}

const plain = /^[ -~\n\t]*$/

/** The one list of characters that page, terminal and the check of tool descriptions mark. In the order of the text. */
export function findMarks(text: string): Mark[] {
  const found = [...eachMark(text)].sort((left, right) => left.index - right.index)
  const marks: Mark[] = []
  let end = 0
  for (const mark of found) {
    if (mark.index < end) continue
    marks.push(mark)
    end = mark.index + mark.character.length
    // An accent of a marked character would be drawn on the mark.
    for (let accent = combiningAt(text, end); accent !== undefined; accent = combiningAt(text, end)) {
      marks.push({ index: end, character: accent, kind: 'stacked' })
      end += accent.length
    }
  }
  return marks
}

/** The same as they are found: those without ink first. For callers that stop at the first one. */
export function* eachMark(text: string): Generator<Mark> {
  if (plain.test(text)) return
  yield* eachUnseen(text)
  for (const { index, character, ofScience } of findLookAlikes(text))
    yield { index, character, kind: 'look-alike', ...(ofScience && { ofScience }) }
}

export const markReasons: Readonly<Record<MarkKind, string>> = {
  invisible: 'This character is invisible',
  blank: 'This is not an ordinary space or line end',
  unassigned: 'This character is not known',
  stacked: 'This character is drawn over others',
  'look-alike': 'This character looks like another one',
}

/** `U+200B` for a character without ink, `а U+0430` for one that can be seen. */
export function toMarkText({ kind, character }: Mark): string {
  return kind === 'look-alike' ? `${character} ${toCodePoint(character)}` : toCodePoint(character)
}

/** Marks that a person must know of before they trust the text; unusual spaces and line ends are only drawn. */
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

/** `2 invisible characters and 1 character that looks like another one`; undefined where there is nothing to say. */
export function describeWarnings({ invisible, lookAlike }: Warnings): string | undefined {
  const parts = [
    ...(invisible > 0 ? [invisible === 1 ? '1 invisible character' : `${invisible} invisible characters`] : []),
    ...(lookAlike > 0
      ? [lookAlike === 1 ? '1 character that looks like another one' : `${lookAlike} characters that look like others`]
      : []),
  ]
  return parts.length === 0 ? undefined : parts.join(' and ')
}

import { nounFor } from './words.ts'

/** How much of a text there is for a person: characters, and lines as they are written. */
export type Size = { readonly characters: number; readonly lines: number }

export function sizeOf(text: string): Size {
  let lines = 1
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) lines += 1
  return { characters: text.length, lines }
}

/** `300 lines, 12,000 characters` */
export function describeSize({ characters, lines }: Size): string {
  const words = (count: number, noun: string) => `${count.toLocaleString('en')} ${nounFor(count, noun)}`
  return `${words(lines, 'line')}, ${words(characters, 'character')}`
}

/** The lines that a text takes where each is broken after so many columns. */
export function heightOf(text: string, columns: number): number {
  return text.split('\n').reduce((height, line) => height + Math.max(1, Math.ceil(line.length / columns)), 0)
}

export type BlankRun = { readonly index: number; readonly text: string; readonly words: string }

/** Blanks that would push what follows out of sight: many blank lines, or a line that is blank for most of its width. */
const long = /[ \t]{80,}|(?:[ \t]*\n){12,}/g

export function findBlankRuns(text: string): BlankRun[] {
  return [...text.matchAll(long)].map(({ index, 0: run }) => {
    const lines = sizeOf(run).lines - 1
    return { index, text: run, words: lines > 0 ? `${lines} line ends` : `${run.length} blanks` }
  })
}

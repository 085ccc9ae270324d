import { nounFor } from './words.ts'

/** The number of characters in a text, and of lines separated by line feeds. */
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

/** The number of screen lines that a text needs when lines wrap after `columns` characters. */
export function heightOf(text: string, columns: number): number {
  return text.split('\n').reduce((height, line) => height + Math.max(1, Math.ceil(line.length / columns)), 0)
}

export type BlankRun = { readonly index: number; readonly text: string; readonly words: string }

/** Long blank runs push the text after them out of sight: many blank lines, or 80 and more spaces in one line. */
const long = /[ \t]{80,}|(?:[ \t]*\n){12,}/g

export function findBlankRuns(text: string): BlankRun[] {
  return [...text.matchAll(long)].map(({ index, 0: run }) => {
    const lines = sizeOf(run).lines - 1
    return { index, text: run, words: lines > 0 ? `${lines} line breaks` : `${run.length} blanks` }
  })
}

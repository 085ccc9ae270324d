import { displayWidth } from './table.ts'

/** Cut at the edge, wherever that is: every character is shown, in its place. */
export function wrap(text: string, columns: number): string[] {
  const width = Math.max(8, columns)
  const lines: string[] = []
  let line = ''
  let used = 0
  for (const character of text) {
    const wide = displayWidth(character)
    if (used + wide > width) {
      lines.push(line)
      line = ''
      used = 0
    }
    line += character
    used += wide
  }
  return [...lines, line]
}

/** For sentences: between words where there are any. */
export function wrapWords(text: string, columns: number): string[] {
  const width = Math.max(8, columns)
  const lines = ['']
  for (const word of text.split(' ')) {
    const line = lines.at(-1) ?? ''
    const longer = line === '' ? word : `${line} ${word}`
    if (displayWidth(longer) <= width) lines.splice(-1, 1, longer)
    else lines.splice(line === '' ? -1 : lines.length, 1, ...wrap(word, width))
  }
  return lines
}

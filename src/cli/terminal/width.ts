/** Columns of a text on a terminal: East Asian characters and emoji have two, combining characters none. */
export function displayWidth(text: string): number {
  let width = 0
  for (const character of text) {
    if (/\p{Mark}/u.test(character)) continue
    width += wide.test(character) ? 2 : 1
  }
  return width
}

export function cut(text: string, width: number): string {
  if (displayWidth(text) <= width) return text
  let kept = ''
  let used = 0
  for (const character of text) {
    used += displayWidth(character)
    if (used > width - 1) break
    kept += character
  }
  return `${kept}…`
}

/** Breaks lines at the edge, also inside words, so that every character stays visible. */
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

/** Breaks lines between words where possible. */
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

const wide =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u

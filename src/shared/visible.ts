import { findMarks, type Mark } from './marks.ts'

/** Writes every marked character as `\u{200b}`, so that a terminal does not interpret or hide it. */
export function toVisible(text: string): string {
  return replaceMarks(text, ({ character }) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`)
}

/** Writes every marked character of a JSON text as a JSON escape, so that the value stays the same. */
export function toVisibleJson(json: string): string {
  return replaceMarks(json, ({ character }) =>
    Array.from({ length: character.length }, (_, unit) => {
      return `\\u${character.charCodeAt(unit).toString(16).padStart(4, '0')}`
    }).join(''),
  )
}

function replaceMarks(text: string, toText: (mark: Mark) => string): string {
  const marks = findMarks(text)
  if (marks.length === 0) return text
  const pieces: string[] = []
  let end = 0
  for (const mark of marks) {
    pieces.push(text.slice(end, mark.index), toText(mark))
    end = mark.index + mark.character.length
  }
  return [...pieces, text.slice(end)].join('')
}

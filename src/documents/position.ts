/** A position in a text. Line and column start at 1. */
export type Position = { readonly line: number; readonly column: number }

export function positionAt(text: string, offset: number): Position {
  const before = text.slice(0, offset)
  const start = before.lastIndexOf('\n') + 1
  return { line: before.split('\n').length, column: offset - start + 1 }
}

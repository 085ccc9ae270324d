/**
 * Deeper levels get no more indentation. Otherwise the indentation of a deeply nested value could be many times longer
 * than the value.
 */
const mostIndented = 10

/** JSON with one value on each line. Keys keep the order in which they are sent. */
export function toReadableJson(value: unknown): string {
  const json = JSON.stringify(value) ?? 'null'
  const pieces: string[] = []
  let depth = 0
  for (let at = 0; at < json.length; ) {
    const end = json[at] === '"' ? stringEnd(json, at) : at + 1
    const piece = json.slice(at, end)
    const isEmpty = (piece === '{' || piece === '[') && (json[end] === '}' || json[end] === ']')
    if (isEmpty) {
      pieces.push(piece, json.charAt(end))
      at = end + 1
      continue
    }
    if (piece === '}' || piece === ']') pieces.push(lineOf(--depth))
    pieces.push(piece)
    if (piece === '{' || piece === '[') pieces.push(lineOf(++depth))
    if (piece === ',') pieces.push(lineOf(depth))
    if (piece === ':') pieces.push(' ')
    at = end
  }
  return pieces.join('')
}

function stringEnd(json: string, from: number): number {
  let at = from + 1
  while (json[at] !== '"') at += json[at] === '\\' ? 2 : 1
  return at + 1
}

function lineOf(depth: number): string {
  return `\n${'  '.repeat(Math.min(depth, mostIndented))}`
}

/** Every string in a value, including object keys. */
export function* eachText(value: unknown): Generator<string> {
  const left: unknown[] = [value]
  while (left.length > 0) {
    const next = left.pop()
    if (typeof next === 'string') yield next
    if (typeof next !== 'object' || next === null) continue
    if (!Array.isArray(next)) yield* Object.keys(next)
    for (const child of Object.values(next)) left.push(child)
  }
}

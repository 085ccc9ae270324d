import { parse, TomlError } from 'smol-toml'
import type { Parsing } from './parse.ts'
import type { Position } from './position.ts'
import { scanToml, type TomlEntry } from './toml-lines.ts'
import type { Path } from './values.ts'

export function parseTomlFile(text: string): Parsing {
  try {
    const value: unknown = parse(text, { maxDepth: 100 })
    const entries = scanToml(text)
    return { ok: true, parsed: { value, locate: (path) => findPosition(text, entries, path) } }
  } catch (error) {
    const position = error instanceof TomlError ? { line: error.line, column: error.column } : { line: 1, column: 1 }
    return { ok: false, faults: [{ position, key: '', message: toWords(error) }] }
  }
}

/** Only the first line of the parser's message: the other lines quote the file, which may contain a secret. */
function toWords(error: unknown): string {
  const [first = ''] = (error instanceof Error ? error.message : String(error)).split('\n')
  return `is not TOML: ${first.replace('Invalid TOML document: ', '')}`
}

/** The parser returns no positions. Finds the header or key of the path, else an entry below it, else its parent. */
function findPosition(text: string, entries: readonly TomlEntry[], path: Path): Position {
  for (let length = path.length; length > 0; length--) {
    const wanted = path.slice(0, length)
    const entry =
      entries.find((candidate) => candidate.path.length === length && beginsWith(candidate.path, wanted)) ??
      entries.find((candidate) => beginsWith(candidate.path, wanted))
    if (entry !== undefined) return findInside(text, entry, path[length])
  }
  return { line: 1, column: 1 }
}

export function beginsWith(path: Path, start: Path): boolean {
  return start.every((segment, index) => path[index] === segment)
}

/** A key inside a long list or inline table is searched in the text. */
function findInside(text: string, entry: TomlEntry, segment: string | number | undefined): Position {
  const position = { line: entry.first + 1, column: entry.column }
  if (entry.kind !== 'value' || typeof segment !== 'string') return position
  const lines = text.split('\n').slice(entry.first, entry.last + 1)
  const offset = lines.findIndex((line) => line.includes(segment))
  return offset <= 0 ? position : { line: entry.first + offset + 1, column: (lines[offset]?.indexOf(segment) ?? 0) + 1 }
}

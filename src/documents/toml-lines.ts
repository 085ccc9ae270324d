import type { Path } from './values.ts'

/** A table header or a `key = value` line of a TOML text, with its first and last line (counted from 0). */
export type TomlEntry = {
  readonly kind: 'table' | 'list-table' | 'value'
  readonly path: Path
  /** The table that contains the value; for a header, its own path. */
  readonly table: Path
  readonly first: number
  readonly last: number
  readonly column: number
  /** The offset where the value ends, before a trailing comment. */
  readonly end: number
}

/** Finds the positions of all headers and values. The text must be valid TOML: this scanner does not check it. */
export function scanToml(text: string): TomlEntry[] {
  const scanner = createScanner(text)
  const entries: TomlEntry[] = []
  const lists = new Map<string, number>()
  let table: Path = []
  const place = (base: Path, names: readonly string[]): (string | number)[] => {
    const path = [...base]
    for (const name of names) {
      path.push(name)
      const last = lists.get(JSON.stringify(path))
      if (last !== undefined) path.push(last)
    }
    return path
  }
  while (scanner.skipToEntry()) {
    const first = scanner.line()
    const column = scanner.column()
    const brackets = scanner.brackets()
    const names = scanner.names()
    if (brackets === 0) {
      scanner.skipValue()
      const [last, end] = [scanner.line(), scanner.offset()]
      entries.push({ kind: 'value', path: [...table, ...names], table, first, last, column, end })
    } else if (brackets === 1) {
      table = place([], names)
      entries.push({ kind: 'table', path: table, table, first, last: first, column, end: scanner.offset() })
    } else {
      const list = [...place([], names.slice(0, -1)), names.at(-1) ?? '']
      const key = JSON.stringify(list)
      const index = (lists.get(key) ?? -1) + 1
      lists.set(key, index)
      table = [...list, index]
      entries.push({ kind: 'list-table', path: table, table, first, last: first, column, end: scanner.offset() })
    }
    scanner.skipLine()
  }
  return entries
}

function createScanner(text: string) {
  let at = 0
  let lines = 0
  let counted = 0
  const line = (): number => {
    for (; counted < at; counted++) if (text[counted] === '\n') lines++
    return lines
  }
  const skip = (pattern: RegExp): string => {
    pattern.lastIndex = at
    const match = pattern.exec(text)?.[0] ?? ''
    at += match.length
    return match
  }
  const skipLine = () => {
    skip(/[^\n]*\n?/y)
  }
  return {
    line,
    offset: () => at,
    column: () => at - text.lastIndexOf('\n', at - 1),
    skipLine,
    /** Skips blank lines and comments. Returns false at the end of the text. */
    skipToEntry(): boolean {
      while (skip(/[ \t\r\n]+/y) !== '' || skip(/#[^\n]*/y) !== '');
      return at < text.length
    },
    brackets: () => skip(/\[{1,2}/y).length,
    /** Reads a dotted key, bare or quoted, and the `]` or `=` after it. */
    names(): string[] {
      const names: string[] = []
      while (at < text.length) {
        skip(/[ \t]+/y)
        names.push(toName(skip(/"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[A-Za-z0-9_-]+/y)))
        skip(/[ \t]+/y)
        if (skip(/\./y) === '') break
      }
      skip(/\]{1,2}|=/y)
      return names
    },
    /** Skips a value. Lists, inline tables and multi-line strings may span many lines. */
    skipValue(): void {
      let depth = 0
      while (at < text.length) {
        skip(depth > 0 ? /[ \t\r\n,]+/y : /[ \t]+/y)
        if (skip(/[[{]/y) !== '') depth++
        else if (skip(/[\]}]/y) !== '') depth--
        else if (depth > 0 && skip(/#[^\n]*/y) !== '') continue
        else if (skip(/"""(?:[^"\\]|\\[\s\S]|"(?!""))*"{3,5}|'''(?:[^']|'(?!''))*'{3,5}/y) === '') {
          const word = skip(/"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[^\s,[\]{}#"']+/y)
          if (word === '') return
        }
        if (depth === 0) return
      }
    },
  }
}

function toName(raw: string): string {
  if (raw.startsWith("'")) return raw.slice(1, -1)
  if (!raw.startsWith('"')) return raw
  try {
    return String(JSON.parse(raw))
  } catch {
    return raw.slice(1, -1)
  }
}

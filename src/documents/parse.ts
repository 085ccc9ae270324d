import { parseJsonFile } from './parse-json.ts'
import { parseJsoncFile } from './parse-jsonc.ts'
import { parseTomlFile } from './parse-toml.ts'
import { parseYamlFile } from './parse-yaml.ts'
import type { Position } from './position.ts'
import { isPlainObject, type Path } from './values.ts'

export type Format = 'yaml' | 'json' | 'toml'
/** `jsonc`: JSON with comments and trailing commas, which other programs write. */
export type DocumentFormat = Format | 'jsonc'

/**
 * The value of a file, and the position of each key. For a missing key `locate` returns the position of its nearest
 * parent.
 */
export type Parsed = { readonly value: unknown; locate(path: Path): Position }

/** An error that prevents a text from being parsed. */
export type Fault = { readonly position: Position; readonly key: string; readonly message: string }

export type Parsing =
  | { readonly ok: true; readonly parsed: Parsed }
  | { readonly ok: false; readonly faults: readonly Fault[] }

export function findFormat(file: string): Format | undefined {
  const ending = /\.(yaml|yml|json|toml)$/i.exec(file)?.[1]?.toLowerCase()
  if (ending === 'json' || ending === 'toml') return ending
  return ending === undefined ? undefined : 'yaml'
}

export function parseText(format: DocumentFormat, text: string): Parsing {
  if (format === 'json') return parseJsonFile(text)
  if (format === 'jsonc') return parseJsoncFile(text)
  return format === 'toml' ? parseTomlFile(text) : parseYamlFile(text)
}

/** JSON is parsed fast, and some programs keep their whole history in one JSON file. */
const mostCharacters: Readonly<Record<DocumentFormat, number>> = {
  json: 16_777_216,
  jsonc: 16_777_216,
  yaml: 524_288,
  toml: 524_288,
}
const mostValues = 500_000
const mostOpen = 2000
const mostDepth = 200

/**
 * Parses a text that another person or program wrote. Its size is limited, and so is the value: aliases in YAML can make
 * a small text large.
 */
export function parseForeign(format: DocumentFormat, text: string): Parsing {
  if (text.length > mostCharacters[format]) return toFault(`is longer than ${mostCharacters[format]} characters`)
  // The YAML parser needs seconds for a text that only opens brackets.
  if (format === 'yaml' && countOpen(text) > mostOpen) return toFault('is nested too deeply')
  const parsing = parseText(format, text)
  const excess = parsing.ok ? findExcess(parsing.parsed.value, mostCharacters[format]) : undefined
  return excess === undefined ? parsing : toFault(excess)
}

function toFault(message: string): Parsing {
  return { ok: false, faults: [{ position: { line: 1, column: 1 }, key: '', message }] }
}

function countOpen(text: string): number {
  let open = 0
  let most = 0
  for (const bracket of text.matchAll(/[[\]{}]/g)) {
    open += bracket[0] === '[' || bracket[0] === '{' ? 1 : -1
    most = Math.max(most, open)
  }
  return most
}

/** Counts each use of an alias, because a later copy of the value contains each one. */
function findExcess(root: unknown, characters: number): string | undefined {
  const left = { values: mostValues, characters }
  const pending: { value: unknown; depth: number }[] = [{ value: root, depth: 0 }]
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { value, depth } = next
    const parts = isPlainObject(value) ? Object.values(value) : Array.isArray(value) ? value : []
    const names = isPlainObject(value) ? Object.keys(value) : [value]
    left.values -= 1
    for (const name of names) if (typeof name === 'string') left.characters -= name.length
    // The YAML parser itself stops only where its stack ends, which differs from call to call.
    if (depth > mostDepth) return 'is nested too deeply'
    if (left.values < 0 || left.characters < 0) return 'has too many values'
    for (const part of parts) pending.push({ value: part, depth: depth + 1 })
  }
  return undefined
}

/** A message about a text that may contain secrets: the words of the YAML parser can quote the text. */
export function withoutQuotes(message: string, format: DocumentFormat): string {
  const isOwn = /^(?:is|has|contains|its|a key|a tab|a second) [a-zA-Z ,;()*&-]*$/.test(message)
  return format !== 'yaml' || isOwn ? message : 'is not YAML'
}

import { parseJsonFile } from './parse-json.ts'
import { parseTomlFile } from './parse-toml.ts'
import { parseYamlFile } from './parse-yaml.ts'
import type { Position } from './position.ts'
import type { Path } from './values.ts'

export type Format = 'yaml' | 'json' | 'toml'

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

export function parseText(format: Format, text: string): Parsing {
  if (format === 'json') return parseJsonFile(text)
  return format === 'toml' ? parseTomlFile(text) : parseYamlFile(text)
}

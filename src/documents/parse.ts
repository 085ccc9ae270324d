import { parseJsonFile } from './parse-json.ts'
import { parseTomlFile } from './parse-toml.ts'
import { parseYamlFile } from './parse-yaml.ts'
import type { Position } from './position.ts'
import type { Path } from './values.ts'

export type Format = 'yaml' | 'json' | 'toml'

/** The value of a file, and where each of its keys stands; for a key that is absent, its nearest parent. */
export type Parsed = { readonly value: unknown; locate(path: Path): Position }

/** What keeps a text from being read at all. */
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

import { findNodeAtLocation, parseTree } from 'jsonc-parser'
import { isMap, isScalar } from 'yaml'
import { toTomlPath } from './edit-toml.ts'
import { DocumentError } from './error.ts'
import { type Format, parseText } from './parse.ts'
import { beginsWith } from './parse-toml.ts'
import { readYaml } from './parse-yaml.ts'
import { scanToml, type TomlEntry } from './toml-lines.ts'
import { isPlainObject, isSame, type Path } from './values.ts'

/** A new name for the key at a path. The value of the key is kept. */
export type Rename = { readonly path: Path; readonly name: string }

/**
 * Gives a key another name and keeps everything else, also the comments inside its value. `value` is the value of the
 * document before. Throws a `DocumentError` if the key has no place of its own in the text, for example behind an alias.
 */
export function renameKey(text: string, format: Format, rename: Rename & { readonly value: unknown }): string {
  const edited = write(text, format, rename)
  const parsing = edited === undefined ? undefined : parseText(format, edited)
  if (edited === undefined || !parsing?.ok || !isSame(parsing.parsed.value, withKeyAt(rename.value, rename)))
    throw new DocumentError()
  return edited
}

/** A copy with another name for the key at a path. The order of the keys is kept. */
export function withKeyAt(root: unknown, { path: [first, ...rest], name }: Rename): unknown {
  if (!isPlainObject(root) || first === undefined) return root
  const entries = Object.entries(root).map(([key, value]): [string, unknown] => {
    if (key !== String(first)) return [key, value]
    return rest.length === 0 ? [name, value] : [key, withKeyAt(value, { path: rest, name })]
  })
  return Object.fromEntries(entries)
}

function write(text: string, format: Format, { path, name }: Rename): string | undefined {
  if (format === 'toml') return renameToml(text, { path, name })
  const [from, to] = (format === 'json' ? findJsonKey(text, path) : findYamlKey(text, path)) ?? []
  if (from === undefined || to === undefined) return undefined
  return text.slice(0, from) + (format === 'json' ? JSON.stringify(name) : name) + text.slice(to)
}

type Range = readonly [from: number, to: number]

function findJsonKey(text: string, path: Path): Range | undefined {
  const root = parseTree(text)
  const key = root && findNodeAtLocation(root, [...path])?.parent?.children?.[0]
  return key && [key.offset, key.offset + key.length]
}

function findYamlKey(text: string, path: Path): Range | undefined {
  let node: unknown = readYaml(text).contents
  let range: Range | undefined
  for (const segment of path) {
    const pair = isMap(node)
      ? node.items.find(({ key }) => isScalar(key) && String(key.value) === String(segment))
      : undefined
    if (pair === undefined || !isScalar(pair.key) || !pair.key.range) return undefined
    range = [pair.key.range[0], pair.key.range[1]]
    node = pair.value
  }
  return range
}

/** Every header and every dotted key below the path is written again. The last ones come first: offsets stay valid. */
function renameToml(text: string, { path, name }: Rename): string | undefined {
  const written = scanToml(text).filter(
    (entry) => beginsWith(entry.path, path) && (entry.kind !== 'value' || entry.table.length < path.length),
  )
  if (written.length === 0) return undefined
  const starts = listLineStarts(text)
  return written.reduceRight((edited, entry) => {
    const from = (starts[entry.first] ?? 0) + entry.column - 1
    const renamed = [...path.slice(0, -1), name, ...entry.path.slice(path.length)]
    const to = entry.kind === 'value' ? endOfKey(edited, from) : entry.end
    return edited.slice(0, from) + toHead(entry, renamed) + edited.slice(to)
  }, text)
}

function toHead({ kind, table }: TomlEntry, renamed: Path): string {
  if (kind === 'value') return `${toTomlPath(renamed.slice(table.length))} =`
  const path = toTomlPath(renamed.filter((segment) => typeof segment === 'string'))
  return kind === 'table' ? `[${path}]` : `[[${path}]]`
}

function endOfKey(text: string, from: number): number {
  const key = /(?:"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[A-Za-z0-9_. \t-])*=/y
  key.lastIndex = from
  return from + (key.exec(text)?.[0].length ?? 0)
}

function listLineStarts(text: string): number[] {
  return [0, ...[...text.matchAll(/\n/g)].map(({ index }) => index + 1)]
}

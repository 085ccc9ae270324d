import { type Document, isAlias, isMap, isScalar, isSeq, LineCounter, parseDocument } from 'yaml'
import type { Fault, Parsing } from './parse.ts'
import type { Position } from './position.ts'
import { type Path, toKey } from './values.ts'

/** Reads YAML with the same options for parsing and editing. Keys are strings. */
export function readYaml(text: string, lineCounter = new LineCounter()): Document {
  // Pretty errors quote the text around the error, which may contain a secret. The library compares each key with all
  // keys before it, which takes minutes for a text with many keys: duplicate keys are searched below.
  return parseDocument(text, {
    lineCounter,
    prettyErrors: false,
    stringKeys: true,
    resolveKnownTags: false,
    uniqueKeys: false,
  })
}

export function parseYamlFile(text: string): Parsing {
  const counter = new LineCounter()
  const document = readYaml(text, counter)
  const toPosition = (offset: number): Position => {
    const { line, col } = counter.linePos(offset)
    return { line: Math.max(1, line), column: Math.max(1, col) }
  }
  const faults = [...document.errors, ...document.warnings].slice(0, 20).map(
    ({ code, message, pos }): Fault => ({
      position: toPosition(pos[0]),
      key: toKey(findPathAt(document.contents, pos[0], []) ?? []),
      message: words[code] ?? message,
    }),
  )
  const duplicates = faults.length > 0 ? [] : findDuplicates(document.contents, [], toPosition).slice(0, 20)
  if (faults.length + duplicates.length > 0) return { ok: false, faults: [...faults, ...duplicates] }
  try {
    const value: unknown = document.toJS({ maxAliasCount: 100 })
    return { ok: true, parsed: { value, locate: (path) => toPosition(findOffset(document, path)) } }
  } catch (error) {
    return { ok: false, faults: [{ position: { line: 1, column: 1 }, key: '', message: explainUnfolding(error) }] }
  }
}

function findDuplicates(node: unknown, path: Path, toPosition: (offset: number) => Position): Fault[] {
  if (isSeq(node)) return node.items.flatMap((item, index) => findDuplicates(item, [...path, index], toPosition))
  if (!isMap(node)) return []
  const seen = new Set<string>()
  return node.items.flatMap(({ key, value }): Fault[] => {
    if (!isScalar(key)) return []
    const name = String(key.value)
    const here = [...path, name]
    const inside = findDuplicates(value, here, toPosition)
    if (!seen.has(name)) {
      seen.add(name)
      return inside
    }
    const position = toPosition(key.range?.[0] ?? 0)
    return [{ position, key: toKey(here), message: 'is a duplicate key in the same map' }, ...inside]
  })
}

/** Errors that appear only when the value is built: too much nesting, aliases without an anchor, too many aliases. */
function explainUnfolding(error: unknown): string {
  if (error instanceof RangeError) return 'is nested too deeply'
  const unresolved = error instanceof Error && error.message.startsWith('Unresolved alias')
  if (unresolved) return 'has an alias (*name) without its anchor (&name)'
  return 'its aliases (*name) expand to too many values'
}

const words: Readonly<Record<string, string>> = {
  TAB_AS_INDENT: 'a tab cannot indent YAML; use spaces',
  MULTIPLE_DOCS: 'a second document begins here (---); only one document is allowed',
  NON_STRING_KEY: 'a key must be a string',
  RESOURCE_EXHAUSTION: 'is nested too deeply',
}

/** Follows the path as far as it exists, so that a missing key is reported at its parent. */
function findOffset(document: Document, path: Path): number {
  let node: unknown = document.contents
  let offset = isMap(node) ? (node.range?.[0] ?? 0) : 0
  for (const segment of path) {
    const target: unknown = isAlias(node) ? node.resolve(document) : node
    if (isMap(target)) {
      const pair = target.items.find(({ key }) => isScalar(key) && String(key.value) === String(segment))
      if (pair === undefined || !isScalar(pair.key)) break
      offset = pair.key.range?.[0] ?? offset
      node = pair.value
    } else if (isSeq(target)) {
      node = target.items[Number(segment)]
      if (!isScalar(node) && !isMap(node) && !isSeq(node) && !isAlias(node)) break
      offset = node.range?.[0] ?? offset
    } else break
  }
  return offset
}

/** The path of the key that begins at this offset; undefined if no key begins there. */
function findPathAt(node: unknown, offset: number, path: Path): Path | undefined {
  if (isSeq(node)) {
    for (const [index, item] of node.items.entries()) {
      const found = findPathAt(item, offset, [...path, index])
      if (found !== undefined) return found
    }
  }
  if (!isMap(node)) return undefined
  for (const { key, value } of node.items) {
    if (!isScalar(key)) continue
    const here = [...path, String(key.value)]
    const found = key.range?.[0] === offset ? here : findPathAt(value, offset, here)
    if (found !== undefined) return found
  }
  return undefined
}

import { toCanonicalText } from '../lib/canonical.ts'

/** The path of a value in a document: keys and list indexes. */
export type Path = readonly (string | number)[]

/** A value to write at a path. Undefined removes the key. */
export type Step = { readonly path: Path; readonly value: unknown }

export type PlainObject = { readonly [key: string]: unknown }

export function isPlainObject(value: unknown): value is PlainObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** YAML and TOML write a list of maps with one entry after the other, and other lists on one line. */
export function isListOfMaps(value: unknown): value is readonly PlainObject[] {
  return Array.isArray(value) && value.length > 0 && value.every(isPlainObject)
}

/** Reads own properties only: names come from users, and a server may be named `constructor`. */
export function own<Value>(record: Readonly<Record<string, Value>>, key: string): Value | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined
}

export function valueAt(root: unknown, path: Path): unknown {
  let value = root
  for (const segment of path) {
    if (Array.isArray(value)) value = value[Number(segment)]
    else if (isPlainObject(value)) value = own(value, String(segment))
    else return undefined
  }
  return value
}

/** A copy with `value` at `path`. Undefined removes the key. Missing maps on the path are created. */
export function withValueAt(root: unknown, path: Path, value: unknown): unknown {
  const [first, ...rest] = path
  if (first === undefined) return value
  const fields = isPlainObject(root) ? root : {}
  const key = String(first)
  const changed = withValueAt(own(fields, key), rest, value)
  const kept = Object.entries(fields).map(([name, old]) => [name, name === key ? changed : old])
  if (!Object.hasOwn(fields, key)) kept.push([key, changed])
  return Object.fromEntries(kept.filter(([, entry]) => entry !== undefined))
}

export function isSame(left: unknown, right: unknown): boolean {
  return toCanonicalText(left) === toCanonicalText(right)
}

export function toKey(path: Path): string {
  return path.join('.')
}

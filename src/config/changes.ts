import type { Config } from '../contract/config.ts'
import { findFormat } from '../documents/parse.ts'
import { isPlainObject, isSame, type PlainObject } from '../documents/values.ts'
import type { ConfigProblem } from './problems.ts'

/** The keys that differ between two configurations: top-level keys, and single entries of keys with named entries. */
export function listChanged(before: Config, after: Config): string[] {
  const [old, now]: PlainObject[] = [before, after]
  const keys = new Set([...Object.keys(before), ...Object.keys(after)])
  return [...keys].flatMap((key) => {
    const [left, right] = [old?.[key], now?.[key]]
    if (isSame(left, right)) return []
    return named.has(key) && isPlainObject(left) && isPlainObject(right) ? listEntries(key, left, right) : [key]
  })
}

const named: ReadonlySet<string> = new Set(['servers', 'toolsets', 'projects', 'agents', 'users', 'webhooks'])

/** The parts of a configuration by their dotted keys, divided as `listChanged` does. */
export function listParts(value: unknown): [string, unknown][] {
  if (!isPlainObject(value)) return []
  return Object.entries(value).flatMap(([key, part]): [string, unknown][] =>
    named.has(key) && isPlainObject(part)
      ? Object.entries(part).map(([name, entry]) => [`${key}.${name}`, entry])
      : [[key, part]],
  )
}

function listEntries(key: string, before: PlainObject, after: PlainObject): string[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)])
  const at = (fields: PlainObject, name: string) => (Object.hasOwn(fields, name) ? fields[name] : undefined)
  return [...names].filter((name) => !isSame(at(before, name), at(after, name))).map((name) => `${key}.${name}`)
}

/**
 * Whether a program may still be writing the file: it has no line break at the end, or is a prefix of the text in force.
 * JSON is not checked: incomplete JSON does not parse.
 */
export function isUnfinished(file: string, text: string, inForce: string): boolean {
  if (findFormat(file) === 'json') return false
  return text !== inForce && (!text.endsWith('\n') || inForce.startsWith(text))
}

/** A prefix of the text in force that ends within a line was cut off, even if it is valid. */
export function findCut(file: string, text: string, inForce: string): ConfigProblem | undefined {
  const cut = inForce.startsWith(text) && !text.endsWith('\n') && !/^\r?\n/.test(inForce.slice(text.length))
  if (!cut || text === inForce) return undefined
  const message = 'looks cut off: it ends within a line; if this is intended, add a line break at the end'
  return { file, line: text.split('\n').length, key: '', message }
}

import type { JsonValue } from '../contract/json.ts'
import { toCanonicalText } from '../lib/canonical.ts'
import { isObject } from '../lib/json.ts'
import { toChangedLines } from '../shared/line-difference.ts'
import { toVisible } from '../shared/visible.ts'

/**
 * What changed from one definition to the other, for people: a block for each field, by its path, with the lines that
 * went and came. Plain text with every hidden character made visible; never HTML.
 */
export function toDifference(before: JsonValue | undefined, after: JsonValue | undefined): string {
  const blocks: string[] = []
  compareAt('', before, after)
  return blocks.join('\n')

  function compareAt(path: string, old: JsonValue | undefined, now: JsonValue | undefined): void {
    if (old === undefined && now === undefined) return
    if (old !== undefined && now !== undefined && toCanonicalText(old) === toCanonicalText(now)) return
    const either = old ?? now
    // A whole definition that came or went is told field by field; a single field of it is told at once.
    if (isObject(either) && (isObject(old) || old === undefined) && (isObject(now) || now === undefined)) {
      if (path === '' || (old !== undefined && now !== undefined)) return compareMembers(path, old ?? {}, now ?? {})
    }
    const verb = old === undefined ? 'added' : now === undefined ? 'removed' : 'changed'
    blocks.push(`${path === '' ? 'definition' : path} (${verb})`)
    blocks.push(...toLines(old, now))
  }

  function compareMembers(path: string, old: { [key: string]: JsonValue }, now: { [key: string]: JsonValue }): void {
    for (const key of new Set([...Object.keys(old), ...Object.keys(now)])) {
      const inner = path === '' ? toPathPart(key) : `${path}.${toPathPart(key)}`
      compareAt(inner, own(old, key), own(now, key))
    }
  }
}

function own(object: { [key: string]: JsonValue }, key: string): JsonValue | undefined {
  return Object.hasOwn(object, key) ? object[key] : undefined
}

/** A key that would read like two, or like a line of the difference, stands in quotes. */
function toPathPart(key: string): string {
  return /^[\w$-]+$/.test(key) ? key : toVisible(JSON.stringify(key))
}

function toLines(old: JsonValue | undefined, now: JsonValue | undefined): string[] {
  // Where a text becomes something else, `true` and "true" must not look the same.
  const quoted = old !== undefined && now !== undefined && typeof old !== typeof now
  const before = old === undefined ? [] : toText(old, quoted)
  const after = now === undefined ? [] : toText(now, quoted)
  return toChangedLines(before, after)
}

function toText(value: JsonValue, quoted: boolean): string[] {
  const text = typeof value === 'string' && !quoted ? value : JSON.stringify(value, null, 2)
  return text.split('\n').map(toVisible)
}

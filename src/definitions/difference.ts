import type { JsonValue } from '../contract/json.ts'
import { toCanonicalText } from '../lib/canonical.ts'
import { isObject } from '../lib/json.ts'
import { toChangedLines } from '../shared/line-difference.ts'
import { toVisible } from '../shared/visible.ts'

/**
 * The difference between two definitions for display: one block for each changed field, with its path and the removed
 * and added lines. Plain text without HTML, with every invisible character made visible.
 */
export function toDifference(before: JsonValue | undefined, after: JsonValue | undefined): string {
  const blocks: string[] = []
  compareAt('', before, after)
  return blocks.join('\n')

  function compareAt(path: string, old: JsonValue | undefined, now: JsonValue | undefined): void {
    if (old === undefined && now === undefined) return
    if (old !== undefined && now !== undefined && toCanonicalText(old) === toCanonicalText(now)) return
    const either = old ?? now
    // An added or removed definition is shown field by field.
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

/** Quotes a key that could be read as two keys or as a line of the difference. */
function toPathPart(key: string): string {
  return /^[\w$-]+$/.test(key) ? key : toVisible(JSON.stringify(key))
}

function toLines(old: JsonValue | undefined, now: JsonValue | undefined): string[] {
  // If the type changes, quotes make the string "true" different from the value `true`.
  const quoted = old !== undefined && now !== undefined && typeof old !== typeof now
  const before = old === undefined ? [] : toText(old, quoted)
  const after = now === undefined ? [] : toText(now, quoted)
  return toChangedLines(before, after)
}

function toText(value: JsonValue, quoted: boolean): string[] {
  const text = typeof value === 'string' && !quoted ? value : JSON.stringify(value, null, 2)
  return text.split('\n').map(toVisible)
}

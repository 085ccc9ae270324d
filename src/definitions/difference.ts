import type { JsonValue } from '../contract/json.ts'
import { toCanonicalText } from '../lib/canonical.ts'
import { isObject } from '../lib/json.ts'
import { toVisible } from '../text/visible.ts'

/** More lines than this are shown as a whole on both sides. */
const mostLines = 2000

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
  if (before.length > mostLines || after.length > mostLines) return [...marked('-', before), ...marked('+', after)]
  return diffLines(before, after)
}

function toText(value: JsonValue, quoted: boolean): string[] {
  const text = typeof value === 'string' && !quoted ? value : JSON.stringify(value, null, 2)
  return text.split('\n').map(toVisible)
}

function marked(mark: string, lines: readonly string[]): string[] {
  return lines.map((line) => `  ${mark} ${line}`)
}

/** The longest common lines stay, the others went or came. What is equal at both ends is not looked at twice. */
function diffLines(before: readonly string[], after: readonly string[]): string[] {
  let head = 0
  while (head < before.length && head < after.length && before[head] === after[head]) head++
  let tail = 0
  while (
    tail < before.length - head &&
    tail < after.length - head &&
    before[before.length - 1 - tail] === after[after.length - 1 - tail]
  )
    tail++
  const old = before.slice(head, before.length - tail)
  const now = after.slice(head, after.length - tail)
  const context = (lines: readonly string[]) => marked(' ', lines)
  return [
    ...context(before.slice(Math.max(0, head - 2), head)),
    ...middle(old, now),
    ...context(before.slice(before.length - tail, before.length - tail + 2)),
  ]
}

function middle(old: readonly string[], now: readonly string[]): string[] {
  const width = now.length + 1
  const common = new Uint16Array((old.length + 1) * width)
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = now.length - 1; j >= 0; j--) {
      const at = i * width + j
      const skipped = Math.max(common[at + width] ?? 0, common[at + 1] ?? 0)
      common[at] = old[i] === now[j] ? (common[at + width + 1] ?? 0) + 1 : skipped
    }
  }
  const lines: string[] = []
  let i = 0
  let j = 0
  while (i < old.length || j < now.length) {
    const at = i * width + j
    if (i < old.length && j < now.length && old[i] === now[j]) {
      lines.push(`    ${old[i++]}`)
      j++
    } else if (i < old.length && (j >= now.length || (common[at + width] ?? 0) >= (common[at + 1] ?? 0))) {
      lines.push(`  - ${old[i++]}`)
    } else {
      lines.push(`  + ${now[j++]}`)
    }
  }
  return lines
}

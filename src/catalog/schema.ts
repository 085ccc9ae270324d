import type { JsonObject, JsonValue } from '../contract/json.ts'
import { isObject } from '../lib/json.ts'

export type JudgedSchema =
  | { readonly kind: 'usable'; readonly schema: JsonObject; readonly mended: string | undefined }
  | { readonly kind: 'dangerous'; readonly reason: string }

const maxDepth = 64
const maxNodes = 5000

/** Clients compile, follow and run what stands in a schema: it is code from a stranger. */
export function judgeSchema(value: JsonValue | undefined): JudgedSchema {
  if (value === undefined || value === null) return generic('a missing schema was taken for any object')
  if (!isObject(value)) return generic('a schema that is not an object was replaced by any object')
  const walked = walk(value)
  if (walked.problem) return { kind: 'dangerous', reason: walked.problem }
  const cleaned = walked.patterns > 0 ? withoutPatterns(value) : value
  const notes = walked.patterns > 0 ? ['a pattern that can take for ever was left out'] : []
  const { type } = cleaned
  if (type === 'object') return usable(cleaned, notes)
  if (type === undefined) return usable({ type: 'object', ...cleaned }, [...notes, 'type: object was added'])
  return generic('a schema for something else than an object was replaced by any object')
}

function usable(schema: JsonObject, notes: readonly string[]): JudgedSchema {
  return { kind: 'usable', schema, mended: notes.length > 0 ? notes.join('; ') : undefined }
}

function generic(mended: string): JudgedSchema {
  return { kind: 'usable', schema: { type: 'object', additionalProperties: true }, mended }
}

type Walked = { readonly problem: string | undefined; readonly patterns: number }

function walk(root: JsonObject): Walked {
  const pending: { value: JsonValue; depth: number }[] = [{ value: root, depth: 0 }]
  let nodes = 0
  let patterns = 0
  for (let next = pending.pop(); next; next = pending.pop()) {
    if (++nodes > maxNodes) return { problem: `has more than ${maxNodes} parts`, patterns }
    if (next.depth > maxDepth) return { problem: 'is nested too deep', patterns }
    if (typeof next.value !== 'object' || next.value === null) continue
    const { value, depth } = next
    const reference = isObject(value) ? (value.$ref ?? value.$dynamicRef) : undefined
    if (typeof reference === 'string' && !reference.startsWith('#'))
      return { problem: 'refers to another document', patterns }
    if (typeof reference === 'string' && isEndless(root, reference))
      return { problem: 'refers to itself without end', patterns }
    if (isObject(value) && typeof value.pattern === 'string' && isExplosive(value.pattern)) patterns++
    for (const child of Object.values(value)) pending.push({ value: child, depth: depth + 1 })
  }
  return { problem: undefined, patterns }
}

/** A reference that leads back to itself through nothing but references never says anything. */
function isEndless(root: JsonObject, reference: string): boolean {
  const seen = new Set<string>()
  let at: string | undefined = reference
  while (at !== undefined) {
    if (seen.has(at)) return true
    seen.add(at)
    const target: JsonValue | undefined = lookUp(root, at)
    at = isObject(target) && typeof target.$ref === 'string' ? target.$ref : undefined
  }
  return false
}

function lookUp(root: JsonObject, reference: string): JsonValue | undefined {
  let value: JsonValue | undefined = root
  for (const part of reference.slice(1).split('/').filter(Boolean)) {
    if (!isObject(value)) return undefined
    value = value[decode(part)]
  }
  return value
}

function decode(part: string): string {
  return part.replaceAll('~1', '/').replaceAll('~0', '~')
}

/** A repeated group that itself ends in a repetition: the shape of expressions that backtrack without end. */
function isExplosive(pattern: string): boolean {
  return pattern.length > 1000 || /\([^()]*[+*}][^()]*\)\s*[+*{]/.test(pattern)
}

function withoutPatterns(value: JsonObject): JsonObject {
  return JSON.parse(JSON.stringify(value), (key: string, inner: JsonValue) =>
    key === 'pattern' && typeof inner === 'string' && isExplosive(inner) ? undefined : inner,
  )
}

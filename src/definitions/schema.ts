import type { JsonObject, JsonValue } from '../contract/json.ts'
import { isObject } from '../lib/json.ts'
import { cleanSchema, subschemas } from './keywords.ts'

export type JudgedSchema =
  | { readonly kind: 'usable'; readonly schema: JsonObject; readonly mended: string | undefined }
  | { readonly kind: 'dangerous'; readonly reason: string }

const maxDepth = 64
const maxParts = 5000
/** The most nested alternatives that a client may have to try on one value. */
const maxUnfolded = 10_000
const maxChain = 500

/** Clients compile and evaluate schemas, so a schema is untrusted code. */
export function judgeSchema(value: JsonValue | undefined): JudgedSchema {
  if (value === undefined || value === null) return generic('the schema is missing; any object is accepted')
  if (!isObject(value)) return generic('the schema is not an object; any object is accepted')
  const reason = findDanger(value)
  if (reason !== undefined) return { kind: 'dangerous', reason }
  const { type } = value
  if (type !== undefined && type !== 'object')
    return generic('the type of the schema is not object; any object is accepted')
  const known = new Set(everySchema(value))
  const { schema, leftOut } = cleanSchema(value, (reference) => hasTarget(value, reference, known))
  if ([...everySchema(schema)].some(({ $ref }) => typeof $ref === 'string' && !isObject(lookUp(schema, $ref))))
    return generic('the schema refers to a part that had to be removed; any object is accepted')
  const notes = leftOut.length > 0 ? [`removed from its schema: ${leftOut.join(', ')}`] : []
  if (type === 'object') return usable(schema, notes)
  return usable({ type: 'object', ...schema }, [...notes, 'type: object was added'])
}

function usable(schema: JsonObject, notes: readonly string[]): JudgedSchema {
  return { kind: 'usable', schema, mended: notes.length > 0 ? notes.join('; ') : undefined }
}

function generic(mended: string): JudgedSchema {
  return { kind: 'usable', schema: { type: 'object', additionalProperties: true }, mended }
}

function findDanger(root: JsonObject): string | undefined {
  const oversize = measure(root)
  if (oversize !== undefined) return oversize
  const schemas = [...everySchema(root)]
  if (schemas.some(refersElsewhere)) return 'refers to another document'
  const costs = new Map<JsonObject, number>()
  for (const schema of schemas) {
    const cost = unfold({ root, schema, costs, chain: new Set() })
    if (cost === Number.POSITIVE_INFINITY) return 'refers to itself endlessly'
    if (cost > maxUnfolded) return `expands to more than ${maxUnfolded} parts`
  }
  return undefined
}

/** Runs before all recursive functions and is not recursive, so that deep nesting cannot overflow the stack. */
function measure(root: JsonObject): string | undefined {
  const pending: { value: JsonValue; depth: number }[] = [{ value: root, depth: 0 }]
  let parts = 0
  for (let next = pending.pop(); next; next = pending.pop()) {
    if (++parts > maxParts) return `has more than ${maxParts} parts`
    if (next.depth > maxDepth) return 'is nested too deeply'
    const { value, depth } = next
    if (typeof value !== 'object' || value === null) continue
    for (const child of Object.values(value)) pending.push({ value: child, depth: depth + 1 })
  }
  return undefined
}

function* everySchema(schema: JsonObject): Generator<JsonObject> {
  yield schema
  for (const inner of subschemas(schema)) yield* everySchema(inner.schema)
}

function refersElsewhere({ $ref, $dynamicRef, $recursiveRef }: JsonObject): boolean {
  return [$ref, $dynamicRef, $recursiveRef].some((to) => typeof to === 'string' && !to.startsWith('#'))
}

type Unfolding = {
  readonly root: JsonObject
  readonly schema: JsonObject
  readonly costs: Map<JsonObject, number>
  /** The schemas that lead to this one on the same value. */
  readonly chain: Set<JsonObject>
}

/** The number of schemas that a client evaluates on one value; infinite if a schema refers back to itself. */
function unfold({ root, schema, costs, chain }: Unfolding): number {
  const known = costs.get(schema)
  if (known !== undefined) return known
  if (chain.has(schema) || chain.size > maxChain) return Number.POSITIVE_INFINITY
  chain.add(schema)
  const target = typeof schema.$ref === 'string' ? lookUp(root, schema.$ref) : undefined
  let cost = 1
  if (isObject(target)) cost += unfold({ root, schema: target, costs, chain })
  for (const inner of subschemas(schema)) {
    if (inner.inPlace) cost += unfold({ root, schema: inner.schema, costs, chain })
  }
  chain.delete(schema)
  costs.set(schema, cost)
  return cost
}

/** A reference may only point to a judged schema, not to other values such as a default. */
function hasTarget(root: JsonObject, reference: string, known: ReadonlySet<JsonValue>): boolean {
  const target = lookUp(root, reference)
  return target !== undefined && known.has(target)
}

function lookUp(root: JsonObject, reference: string): JsonValue | undefined {
  if (reference === '#') return root
  if (!reference.startsWith('#/')) return findAnchor(root, reference.slice(1))
  let value: JsonValue | undefined = root
  for (const part of reference.slice(2).split('/')) {
    if (typeof value !== 'object' || value === null) return undefined
    value = member(value, decode(part))
  }
  return value
}

function findAnchor(root: JsonObject, name: string): JsonObject | undefined {
  for (const schema of everySchema(root)) if (schema.$anchor === name) return schema
  return undefined
}

function member(value: JsonValue[] | JsonObject, key: string): JsonValue | undefined {
  if (Array.isArray(value)) return /^\d+$/.test(key) ? value[Number(key)] : undefined
  return Object.hasOwn(value, key) ? value[key] : undefined
}

function decode(part: string): string {
  return fromPercents(part).replaceAll('~1', '/').replaceAll('~0', '~')
}

function fromPercents(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

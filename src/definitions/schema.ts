import type { JsonObject, JsonValue } from '../contract/json.ts'
import { isObject } from '../lib/json.ts'
import { cleanSchema, subschemas } from './keywords.ts'

export type JudgedSchema =
  | { readonly kind: 'usable'; readonly schema: JsonObject; readonly mended: string | undefined }
  | { readonly kind: 'dangerous'; readonly reason: string }

const maxDepth = 64
const maxParts = 5000
/** Alternatives within alternatives, each of which a client tries on the same value. */
const maxUnfolded = 10_000
const maxChain = 500

/** Clients compile, follow and run what stands in a schema: it is code from a stranger. */
export function judgeSchema(value: JsonValue | undefined): JudgedSchema {
  if (value === undefined || value === null) return generic('a missing schema was taken for any object')
  if (!isObject(value)) return generic('a schema that is not an object was replaced by any object')
  const reason = findDanger(value)
  if (reason !== undefined) return { kind: 'dangerous', reason }
  const { type } = value
  if (type !== undefined && type !== 'object')
    return generic('a schema for something else than an object was replaced by any object')
  const known = new Set(everySchema(value))
  const { schema, leftOut } = cleanSchema(value, (reference) => leadsTo(value, reference, known))
  if ([...everySchema(schema)].some(({ $ref }) => typeof $ref === 'string' && !isObject(lookUp(schema, $ref))))
    return generic('a schema that refers to what had to be left out was replaced by any object')
  const notes = leftOut.length > 0 ? [`left out of its schema: ${leftOut.join(', ')}`] : []
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
    if (cost === Number.POSITIVE_INFINITY) return 'refers to itself without end'
    if (cost > maxUnfolded) return `unfolds to more than ${maxUnfolded} parts`
  }
  return undefined
}

/** Without a stack: it comes before anything that may rely on the bounds. */
function measure(root: JsonObject): string | undefined {
  const pending: { value: JsonValue; depth: number }[] = [{ value: root, depth: 0 }]
  let parts = 0
  for (let next = pending.pop(); next; next = pending.pop()) {
    if (++parts > maxParts) return `has more than ${maxParts} parts`
    if (next.depth > maxDepth) return 'is nested too deep'
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
  /** The schemas that this one is tried for, on the same value. */
  readonly chain: Set<JsonObject>
}

/** How many schemas a client tries on one value; one that comes back to itself on the same value never ends. */
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

/** A reference may lead only to what was judged as a schema: a default value, for one, was not. */
function leadsTo(root: JsonObject, reference: string, known: ReadonlySet<JsonValue>): boolean {
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

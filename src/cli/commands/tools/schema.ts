import type { JsonObject, JsonValue } from '../../../contract/json.ts'
import { isObject } from '../../../lib/json.ts'

/** A JSON Schema of a server: every keyword may be missing or invalid. */
export type Schema = JsonObject

/** Schemas can be recursive, so the depth is limited. */
const deepest = 6

export type Field = { readonly name: string; readonly schema: Schema; readonly required: boolean }

export function toSchema(value: unknown): Schema {
  return isObject(value) ? value : {}
}

/** The arguments of a tool, required ones first, otherwise in the server's order. */
export function toFields(root: Schema): Field[] {
  const properties = toSchema(root.properties)
  const required = new Set(Array.isArray(root.required) ? root.required : [])
  const fields = Object.entries(properties).map(([name, schema]) => ({
    name,
    schema: resolve(root, toSchema(schema)),
    required: required.has(name),
  }))
  return [...fields.filter((field) => field.required), ...fields.filter((field) => !field.required)]
}

/** Follows `$ref` within the document; other references are not followed. */
export function resolve(root: Schema, schema: Schema): Schema {
  let current = schema
  for (let hop = 0; hop < deepest; hop++) {
    const reference = current.$ref
    if (typeof reference !== 'string' || !reference.startsWith('#/')) return current
    let target: JsonValue | undefined = root
    for (const part of reference.slice(2).split('/')) {
      const key = part.replaceAll('~1', '/').replaceAll('~0', '~')
      target = isObject(target) && Object.hasOwn(target, key) ? target[key] : undefined
    }
    if (!isObject(target)) return {}
    const { $ref: _, ...beside } = current
    current = { ...target, ...beside }
  }
  return current
}

/** The JSON types a value may have; empty if the schema does not restrict them. */
export function toTypes(root: Schema, schema: Schema, depth = 0): string[] {
  const own = resolve(root, schema)
  if (typeof own.type === 'string') return [own.type]
  if (Array.isArray(own.type)) return own.type.filter((type) => typeof type === 'string')
  const choices = toChoices(own)
  if (choices.length > 0 && depth < deepest)
    return [...new Set(choices.flatMap((each) => toTypes(root, each, depth + 1)))]
  const values = toValues(own)
  return [...new Set(values.map(typeOf))]
}

export function typeOf(value: JsonValue): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  return typeof value
}

/** Such as `string`, `array of number` or `"a" | "b"`. */
export function describeType(root: Schema, schema: Schema, depth = 0): string {
  const own = resolve(root, schema)
  const values = toValues(own)
  if (values.length > 0) return values.map((value) => JSON.stringify(value)).join(' | ')
  if (depth >= deepest) return 'any'
  const choices = toChoices(own)
  if (choices.length > 0) return [...new Set(choices.map((each) => describeType(root, each, depth + 1)))].join(' or ')
  const types = toTypes(root, own)
  if (types.length === 0) return 'any'
  return types.map((type) => (type === 'array' ? describeArray(root, own, depth) : type)).join(' or ')
}

/** A value that fits the schema: its default, its example or its first choice, if it has one. */
export function toExample(root: Schema, schema: Schema, depth = 0): JsonValue {
  const own = resolve(root, schema)
  if (own.default !== undefined) return own.default
  if (Array.isArray(own.examples) && own.examples[0] !== undefined) return own.examples[0]
  const [first] = toValues(own)
  if (first !== undefined) return first
  if (depth >= deepest) return null
  const [choice] = toChoices(own)
  if (choice !== undefined) return toExample(root, choice, depth + 1)
  const [type] = toTypes(root, own)
  if (type === 'integer' || type === 'number') return toNumber(own)
  if (type === 'boolean') return true
  if (type === 'null') return null
  if (type === 'array') return toItems(root, own, depth)
  if (type === 'object' || own.properties !== undefined)
    return toExampleArguments({ ...own, ...definitions(root) }, depth + 1)
  return toText(own)
}

/** An example with all required arguments; if none is required, with the first argument. */
export function toExampleArguments(root: Schema, depth = 0): JsonObject {
  const fields = toFields(root)
  const chosen = fields.some((field) => field.required) ? fields.filter((field) => field.required) : fields.slice(0, 1)
  return Object.fromEntries(chosen.map((field) => [field.name, toExample(root, field.schema, depth)]))
}

function toChoices(schema: Schema): Schema[] {
  const list = [schema.anyOf, schema.oneOf].find((each) => Array.isArray(each))
  return Array.isArray(list) ? list.filter(isObject) : []
}

function toValues(schema: Schema): JsonValue[] {
  if (schema.const !== undefined) return [schema.const]
  return Array.isArray(schema.enum) ? schema.enum : []
}

function describeArray(root: Schema, schema: Schema, depth: number): string {
  if (!isObject(schema.items)) return 'array'
  const items = describeType(root, schema.items, depth + 1)
  return items.includes(' ') ? `array of (${items})` : `array of ${items}`
}

function toItems(root: Schema, schema: Schema, depth: number): JsonValue[] {
  return isObject(schema.items) ? [toExample(root, schema.items, depth + 1)] : []
}

function toNumber(schema: Schema): number {
  if (typeof schema.minimum === 'number') return schema.minimum
  if (typeof schema.exclusiveMinimum === 'number') return schema.exclusiveMinimum + 1
  return typeof schema.maximum === 'number' && schema.maximum < 1 ? schema.maximum : 1
}

function toText(schema: Schema): string {
  const byFormat: Record<string, string> = {
    date: '2026-01-31',
    'date-time': '2026-01-31T12:00:00Z',
    email: 'someone@example.com',
    uri: 'https://example.com',
    url: 'https://example.com',
    uuid: '00000000-0000-4000-8000-000000000000',
  }
  return (typeof schema.format === 'string' && byFormat[schema.format]) || 'text'
}

/** References in a nested schema point to the definitions of the whole document. */
function definitions(root: Schema): Schema {
  return { ...(root.$defs && { $defs: root.$defs }), ...(root.definitions && { definitions: root.definitions }) }
}

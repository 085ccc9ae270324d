import type { JsonObject, JsonValue } from '../contract/json.ts'
import { isObject } from '../lib/json.ts'
import { isHarmlessPattern } from './patterns.ts'

/** Keywords that contain one schema, a list of schemas, or schemas by name. */
const single = new Set(
  'additionalItems additionalProperties contains contentSchema else if items not propertyNames then unevaluatedItems unevaluatedProperties'.split(
    ' ',
  ),
)
const listed = new Set(['allOf', 'anyOf', 'oneOf', 'prefixItems'])
const named = new Set(['$defs', 'definitions', 'dependentSchemas', 'patternProperties', 'properties'])
/** Keywords of JSON Schema whose content is a plain value, not a schema. */
const literal = new Set(['const', 'default', 'enum', 'example', 'examples'])
/** The keywords of `literal` in which no client looks for schemas. Some clients look for schemas in `example` and `examples`. */
const skipped = new Set(['const', 'default', 'enum'])
/**
 * The only `$` keywords that are kept. Others are addresses, which could mix up the schemas of two servers, and switches
 * such as `$async`, which turns a failed check into an uncaught error.
 */
const keptDollars = new Set(['$anchor', '$comment', '$defs', '$ref', '$schema'])
/** Keywords whose schemas apply to the same value, not to a part of it. */
const inPlace = new Set('allOf anyOf dependencies dependentSchemas else if not oneOf then'.split(' '))

const dialects = /^https?:\/\/json-schema\.org\/(draft-0[67]|draft\/2019-09|draft\/2020-12)\/schema#?$/
const olderDialects = /draft-0[67]|2019-09/

type Check = (value: JsonValue) => boolean

const isString: Check = (value) => typeof value === 'string'
const isNumber: Check = (value) => typeof value === 'number'
const isBoolean: Check = (value) => typeof value === 'boolean'
const isCount: Check = (value) => Number.isInteger(value) && Number(value) >= 0
const isSchema: Check = (value) => typeof value === 'boolean' || isObject(value)
const isList: Check = (value) => Array.isArray(value) && value.length > 0
const areStrings: Check = (value) => Array.isArray(value) && value.every(isString)
const isType: Check = (value) => typeof value === 'string' && types.has(value)
const types = new Set(['array', 'boolean', 'integer', 'null', 'number', 'object', 'string'])

const checks = new Map<string, Check>([
  ['$schema', (value) => typeof value === 'string' && dialects.test(value)],
  ['type', (value) => isType(value) || (Array.isArray(value) && value.length > 0 && value.every(isType))],
  ['enum', isList],
  ['examples', Array.isArray],
  ['required', areStrings],
  ['dependentRequired', (value) => isObject(value) && Object.values(value).every(areStrings)],
  ['pattern', (value) => typeof value === 'string' && isHarmlessPattern(value)],
  ...each('$comment contentEncoding contentMediaType description format title', isString),
  ...each('exclusiveMaximum exclusiveMinimum maximum minimum multipleOf', isNumber),
  ...each('maxContains maxItems maxLength maxProperties minContains minItems minLength minProperties', isCount),
  ...each('deprecated readOnly uniqueItems writeOnly', isBoolean),
])

function each(keywords: string, check: Check): [string, Check][] {
  return keywords.split(' ').map((keyword) => [keyword, check])
}

/** The direct subschemas. `inPlace` marks those that apply to the same value. */
export function* subschemas(schema: JsonObject): Generator<{ schema: JsonObject; inPlace: boolean }> {
  for (const [keyword, value] of Object.entries(schema)) {
    if (literal.has(keyword)) continue
    const isList = listed.has(keyword) || (keyword === 'items' && Array.isArray(value))
    for (const inner of isList ? listOf(value) : byName(keyword, value)) {
      if (isObject(inner)) yield { schema: inner, inPlace: inPlace.has(keyword) }
    }
  }
}

function listOf(value: JsonValue): readonly JsonValue[] {
  return Array.isArray(value) ? value : []
}

function byName(keyword: string, value: JsonValue): readonly JsonValue[] {
  if (!named.has(keyword) && keyword !== 'dependencies') return [value]
  return isObject(value) ? Object.values(value) : []
}

export type Cleaned = { readonly schema: JsonObject; readonly leftOut: readonly string[] }

/**
 * Removes everything that is not valid JSON Schema, because one invalid part makes some clients refuse the whole list of
 * tools. `hasTarget` returns whether a reference has a valid target.
 */
export function cleanSchema(root: JsonObject, hasTarget: (reference: string) => boolean): Cleaned {
  const leftOut = new Set<string>()
  const anchors = new Set<JsonValue>()
  const isOlder = typeof root.$schema === 'string' && olderDialects.test(root.$schema)
  return { schema: clean(root), leftOut: [...leftOut].sort() }

  function clean(schema: JsonObject): JsonObject {
    const kept = Object.entries(schema).flatMap(([keyword, value]): [string, JsonValue][] => {
      const cleaned = cleanKeyword(keyword, value, schema)
      if (cleaned !== undefined) return [[toKeyword(keyword, cleaned), cleaned]]
      if (keyword !== '$schema') leftOut.add(keyword)
      return []
    })
    return Object.fromEntries(kept)
  }

  /** Returns undefined if the keyword must be removed. */
  function cleanKeyword(keyword: string, value: JsonValue, schema: JsonObject): JsonValue | undefined {
    if (keyword === 'id' || (keyword.startsWith('$') && !keptDollars.has(keyword))) return undefined
    if (keyword in Object.prototype) return undefined // clients would find inherited properties under these keys
    if (keyword === '$anchor') return isFirstAnchor(value) ? value : undefined
    if (keyword === '$ref') return typeof value === 'string' && hasTarget(value) ? value : undefined
    if (keyword === 'nullable') return value === true && isType(schema.type ?? null) ? value : undefined
    if (keyword === 'additionalProperties' && !isWhole(schema.patternProperties)) return undefined
    if (single.has(keyword)) return keyword === 'items' && isList(value) ? cleanList(value) : cleanOne(value)
    if (listed.has(keyword)) return isList(value) ? cleanList(value) : undefined
    if (named.has(keyword) || keyword === 'dependencies') return cleanNamed(keyword, value)
    const check = checks.get(keyword)
    if (check) return check(value) ? value : undefined
    return isObject(value) && !skipped.has(keyword) ? clean(value) : value
  }

  /** A duplicate anchor is removed. */
  function isFirstAnchor(value: JsonValue): boolean {
    if (typeof value !== 'string' || !/^[A-Za-z_][\w.-]*$/.test(value) || anchors.has(value)) return false
    anchors.add(value)
    return true
  }

  function cleanOne(value: JsonValue): JsonValue | undefined {
    if (isObject(value)) return clean(value)
    return typeof value === 'boolean' ? value : undefined
  }

  function cleanList(value: JsonValue): JsonValue[] | undefined {
    const cleaned = listOf(value).map(cleanOne)
    return cleaned.every((inner) => inner !== undefined) ? cleaned : undefined
  }

  function cleanNamed(keyword: string, value: JsonValue): JsonObject | undefined {
    if (!isObject(value)) return undefined
    const kept = Object.entries(value).flatMap(([name, inner]): [string, JsonValue][] => {
      const usable = keyword !== 'patternProperties' || isHarmlessPattern(name)
      const cleaned = usable ? cleanMember(keyword, inner) : undefined
      if (cleaned !== undefined) return [[name, cleaned]]
      leftOut.add(keyword)
      return []
    })
    return Object.fromEntries(kept)
  }

  /** Replaces `true` and `false` with equivalent schemas, because some clients do not support booleans here. */
  function cleanMember(keyword: string, value: JsonValue): JsonValue | undefined {
    if (keyword === 'dependencies' && areStrings(value)) return value
    if (typeof value === 'boolean') return value ? {} : { not: {} }
    return cleanOne(value)
  }

  /** Since the 2020 dialect, tuples use `prefixItems`. */
  function toKeyword(keyword: string, value: JsonValue): string {
    return keyword === 'items' && Array.isArray(value) && !isOlder ? 'prefixItems' : keyword
  }

  /** If a pattern was removed, its property names would be treated as additional properties. */
  function isWhole(patterns: JsonValue | undefined): boolean {
    if (patterns === undefined) return true
    return (
      isObject(patterns) &&
      Object.entries(patterns).every(([name, inner]) => isHarmlessPattern(name) && isSchema(inner))
    )
  }
}

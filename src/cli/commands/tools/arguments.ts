import { GatewayError } from '../../../contract/errors.ts'
import type { JsonObject, JsonValue } from '../../../contract/json.ts'
import { isObject, JsonError, parseExactJson } from '../../../lib/json.ts'
import { nearest } from '../../../lib/text.ts'
import { toVisible } from '../../../shared/visible.ts'
import { type Schema, toFields, toSchema, toTypes, typeOf } from './schema.ts'

/** `k=v` is converted to the type in the tool's schema; the value of `k:=json` is JSON. */
export function toArguments(pairs: readonly string[], inputSchema: unknown): JsonObject {
  const root = toSchema(inputSchema)
  const fields = new Map(toFields(root).map((field) => [field.name, field.schema]))
  const result: [string, JsonValue][] = []
  for (const pair of pairs) {
    const { key, raw, text } = splitPair(pair, '--arg')
    const schema = fields.get(key)
    if (schema === undefined) refuseUnknown(key, root, [...fields.keys()])
    result.push([key, raw ? toJson(text, `--arg ${key}`) : toValue(text, root, schema ?? {})])
  }
  return Object.fromEntries(result)
}

/** One JSON object, for `--args` and `--meta`. */
export function toArgumentsObject(text: string, flag = '--args'): JsonObject {
  const value = toJson(text, flag)
  if (isObject(value)) return value
  throw new GatewayError('arguments-invalid', `${flag} must be one JSON object, such as {"name":"value"}`)
}

/** Parses the text as JSON if the schema allows the parsed type; otherwise the value is text. */
function toValue(text: string, root: Schema, schema: Schema): JsonValue {
  const types = toTypes(root, schema)
  if (types.length === 1 && types[0] === 'string') return text
  const parsed = tryJson(text, types.includes('string'))
  if (parsed === undefined || typeof parsed === 'string') return text
  return types.length === 0 || fits(parsed, types) ? parsed : text
}

function fits(value: JsonValue, types: readonly string[]): boolean {
  if (types.includes(typeOf(value))) return true
  return typeof value === 'number' && Number.isInteger(value) && types.includes('integer')
}

/** `raw`: the separator was `:=`, so the text is JSON. */
export function splitPair(pair: string, flag: string): { key: string; raw: boolean; text: string } {
  const match = /^([^=]+?)(:?=)([\s\S]*)$/.exec(pair)
  if (!match) throw new GatewayError('arguments-invalid', `${flag} ${toVisible(pair)} is not NAME=VALUE or NAME:=JSON`)
  return { key: match[1] ?? '', raw: match[2] === ':=', text: match[3] ?? '' }
}

/** If the schema allows no other arguments, an unknown name is an error before anything is sent. */
function refuseUnknown(key: string, root: Schema, known: readonly string[]): void {
  if (root.additionalProperties !== false) return
  const meant = nearest(key, known)
  const suggestion = meant === undefined ? `Its arguments: ${known.join(', ') || 'none'}.` : `Did you mean ${meant}?`
  throw new GatewayError('arguments-invalid', `The tool has no argument ${toVisible(key)}. ${toVisible(suggestion)}`)
}

export function toJson(text: string, where: string): JsonValue {
  try {
    return parseExactJson(text)
  } catch (error) {
    if (isInexact(error)) throw new GatewayError('json-inexact', `${where}: ${error.message}`)
    const reason = error instanceof Error ? error.message : String(error)
    throw new GatewayError('arguments-invalid', `${where} is not JSON: ${toVisible(reason)}`)
  }
}

/** A number that JSON parsing would change is an error, unless the tool also accepts text. */
function tryJson(text: string, takesText: boolean): JsonValue | undefined {
  try {
    return parseExactJson(text)
  } catch (error) {
    if (isInexact(error) && !takesText) throw new GatewayError('json-inexact', error.message)
    return undefined
  }
}

function isInexact(error: unknown): error is JsonError {
  return error instanceof JsonError && error.fault === 'inexact'
}

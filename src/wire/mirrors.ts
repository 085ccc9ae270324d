import type { IncomingHttpHeaders } from 'node:http'
import { GatewayError } from '../contract/errors.ts'
import type { JsonObject, JsonValue } from '../contract/json.ts'
import { isObject } from '../lib/json.ts'
import { fromHeaderValue, toHeaderValue } from './header-value.ts'

/** An argument of a tool that HTTP repeats in a header, for proxies that do not read bodies. */
export type Mirror = { readonly path: readonly string[]; readonly header: string }

const mark = 'x-mcp-header'
const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const mirrored = new Set<JsonValue>(['string', 'integer', 'boolean'])

/** The arguments that a schema marks; or why its marks cannot be followed. */
export function findMirrors(schema: JsonObject): { mirrors: readonly Mirror[] } | { problem: string } {
  const mirrors: Mirror[] = []
  const names = new Set<string>()
  const problem = collect(schema, [])
  return problem === undefined ? { mirrors } : { problem }

  function collect(inside: JsonObject, path: readonly string[]): string | undefined {
    if (!isObject(inside.properties)) return undefined
    for (const [name, property] of Object.entries(inside.properties)) {
      if (!isObject(property)) continue
      const found = take(property, [...path, name]) ?? collect(property, [...path, name])
      if (found !== undefined) return found
    }
    return undefined
  }

  function take(property: JsonObject, path: readonly string[]): string | undefined {
    const name = property[mark]
    if (name === undefined) return undefined
    if (typeof name !== 'string' || !token.test(name))
      return `marks an argument with ${mark} by what is no header's name`
    if (!mirrored.has(property.type ?? null))
      return `marks an argument with ${mark} that is no text, integer or boolean`
    if (names.has(name.toLowerCase())) return `marks two arguments with the same ${mark}`
    names.add(name.toLowerCase())
    mirrors.push({ path, header: `mcp-param-${name.toLowerCase()}` })
    return undefined
  }
}

/** The headers for the arguments that are given. */
export function toMirrorHeaders(mirrors: readonly Mirror[], given: JsonObject): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const { path, header } of mirrors) {
    const text = textAt(given, path)
    if (text !== undefined) headers[header] = toHeaderValue(text)
  }
  return headers
}

/** Headers and arguments must be equal. Otherwise a proxy could decide on other values than the gateway. */
export function checkMirrors(
  mirrors: readonly Mirror[] = [],
  given: JsonObject,
  headers: IncomingHttpHeaders,
): GatewayError | undefined {
  for (const { path, header } of mirrors) {
    const text = textAt(given, path)
    const claimed = headers[header]
    const said = typeof claimed === 'string' ? fromHeaderValue(claimed) : undefined
    const agrees = text === undefined ? claimed === undefined : said === text
    if (agrees) continue
    return new GatewayError('header-mismatch', `The header ${header} differs from the argument ${path.join('.')}`)
  }
  return undefined
}

function textAt(given: JsonObject, path: readonly string[]): string | undefined {
  let value: JsonValue | undefined = given
  for (const name of path) value = isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined
  if (typeof value === 'string') return value
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : undefined
}

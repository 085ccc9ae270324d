import type { IncomingMessage } from 'node:http'
import { GatewayError } from '../contract/errors.ts'
import type { JsonValue } from '../contract/json.ts'
import { type BodyLimits, readBytes } from '../lib/body.ts'
import { isObject, JsonError, parseExactJson } from '../lib/json.ts'

/**
 * Not read by the framework: it also accepts forms, files and event streams, and has no limits for size and depth.
 */
export async function readBody(request: IncomingMessage, limits: BodyLimits): Promise<JsonValue> {
  if (request.method === 'GET' || request.method === 'HEAD') {
    limits.take?.(0)
    return {}
  }
  const bytes = await readBytes(request, limits)
  if (bytes.length === 0) return {}
  const type = request.headers['content-type'] ?? ''
  if (!/^application\/json\s*(;|$)/i.test(type)) {
    throw new GatewayError('request-invalid', 'The body must be JSON: send `Content-Type: application/json`')
  }
  try {
    return parseExactJson(bytes)
  } catch (error) {
    if (!(error instanceof JsonError)) throw error
    if (error.fault === 'inexact') throw new GatewayError('json-inexact', error.message)
    throw new GatewayError('request-invalid', `The body is not JSON: ${error.message}`)
  }
}

/** The definition of a server may be in `definition`, or its keys next to `name`, as in configuration files. */
export function liftDefinition(path: string, body: JsonValue): JsonValue {
  if (!/^\/api\/servers(\/[^/]+)?(\/validate)?$/.test(path) || !isObject(body)) return body
  if ('definition' in body || !('transport' in body)) return body
  const { name, scope, ...definition } = body
  return { ...(name !== undefined && { name }), ...(scope !== undefined && { scope }), definition }
}

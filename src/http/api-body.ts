import type { IncomingMessage } from 'node:http'
import { GatewayError } from '../contract/errors.ts'
import type { JsonValue } from '../contract/json.ts'
import { isObject, JsonError, parseExactJson } from '../lib/json.ts'
import { createPieces } from '../lib/pieces.ts'

export type BodyLimits = {
  readonly mostBytes: number
  /** Counts bytes, at once if their number is announced, or as they come; throws if there is no room for them. */
  take(bytes: number): void
}

/**
 * Read here and not by the framework, which would take forms, files and event streams as well,
 * and would parse without a limit of size or depth.
 */
export async function readBody(request: IncomingMessage, limits: BodyLimits): Promise<JsonValue> {
  if (request.method === 'GET' || request.method === 'HEAD') {
    limits.take(0)
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

/** A server's definition may stand under `definition`, or flat beside its name, as configuration files have it. */
export function liftDefinition(path: string, body: JsonValue): JsonValue {
  if (!/^\/api\/servers(\/[^/]+)?(\/validate)?$/.test(path) || !isObject(body)) return body
  if ('definition' in body || !('transport' in body)) return body
  const { name, scope, ...definition } = body
  return { ...(name !== undefined && { name }), ...(scope !== undefined && { scope }), definition }
}

/** By events: leaving an iteration early would destroy the socket, and with it the way to say why. */
function readBytes(request: IncomingMessage, { mostBytes, take }: BodyLimits): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const tooLarge = () => new GatewayError('request-too-large', `The body is larger than ${mostBytes} bytes`)
  const announced = Number(request.headers['content-length'] ?? 0)
  if (announced > mostBytes) throw tooLarge()
  take(announced)
  const pieces = createPieces()
  request.on('data', (chunk: Buffer) => {
    if (pieces.bytes() + chunk.length > mostBytes) return reject(tooLarge())
    try {
      if (announced === 0) take(chunk.length)
      pieces.add(chunk)
    } catch (error) {
      reject(error)
    }
  })
  request.on('end', () => resolve(pieces.take()))
  request.on('error', (error) =>
    reject(new GatewayError('request-invalid', 'The body broke off', {}, { cause: error })),
  )
  request.on('close', () => reject(new GatewayError('request-invalid', 'The body broke off')))
  return promise
}

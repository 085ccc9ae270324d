import { GatewayError, isErrorCode } from '../../contract/errors.ts'
import type { JsonObject } from '../../contract/json.ts'
import { isObject, parseJson } from '../../lib/json.ts'
import type { Era } from '../../wire/codec.ts'
import { type Envelope, readEnvelope } from '../../wire/envelope.ts'
import { versionHeader } from '../../wire/legacy.ts'
import { findNamedRevision, toModernHeaders } from '../../wire/modern.ts'
import { toErrorMessage } from '../../wire/rpc-error.ts'
import { toMessage } from '../../wire/splice.ts'
import type { Reply } from './http.ts'

/** One message of the client, with the parts that are needed to forward it. */
export type Message = {
  readonly line: Buffer
  readonly envelope: Envelope
  readonly era: Era
  readonly method: string
  readonly params: JsonObject
  /** Headers that the HTTP transport requires for this message. */
  readonly headers: Readonly<Record<string, string>>
}

/** Throws a `JsonError` if the line is not one message. */
export function readMessage(line: Buffer): Message {
  const envelope = readEnvelope(line)
  const method = 'method' in envelope ? envelope.method : ''
  const params = paramsOf(line, envelope)
  const revision = findNamedRevision(params)
  if (revision === undefined) return { line, envelope, era: 'legacy', method, params, headers: {} }
  const headers = { ...toModernHeaders(method, params), [versionHeader]: String(revision) }
  return { line, envelope, era: 'modern', method, params, headers }
}

/** Empty for invalid params: the gateway reports the error. */
function paramsOf(line: Buffer, envelope: Envelope): JsonObject {
  if (!('params' in envelope) || envelope.params === undefined) return {}
  try {
    const params = parseJson(line.subarray(envelope.params.start, envelope.params.end))
    return isObject(params) ? params : {}
  } catch {
    return {}
  }
}

/** Equal ids can be written differently in JSON, so they are compared by value. */
export function toIdKey(id: unknown): string {
  return JSON.stringify(id ?? null)
}

/** Whether the message is the answer to the request with this id (JSON text). */
export function isAnswerTo(bytes: Buffer, id: string): boolean {
  const envelope = findEnvelope(bytes)
  return (envelope?.kind === 'result' || envelope?.kind === 'error') && envelope.id === id
}

export function findEnvelope(bytes: Buffer): Envelope | undefined {
  try {
    return readEnvelope(bytes)
  } catch {
    return undefined
  }
}

/** The answer for the client; undefined if there is none. */
export function toAnswer(reply: Reply, id: string): Buffer | undefined {
  const envelope = findEnvelope(reply.body)
  if (envelope?.kind === 'result') return reply.body
  if (envelope?.kind === 'error') {
    // An error before the gateway has read the request has no id.
    return envelope.id === id
      ? reply.body
      : toMessage(id, 'error', reply.body.subarray(envelope.span.start, envelope.span.end))
  }
  if (reply.status === 202) return undefined
  return toErrorMessage(id, toRefusal(reply))
}

/** The error in an answer that is not a JSON-RPC result, in the form of MCP or of the REST API. */
export function toRefusal({ status, body }: Reply): GatewayError {
  const { error } = parsed(body)
  const said = isObject(error) ? error : {}
  const code = isObject(said.data) ? said.data.code : said.code
  const message = typeof said.message === 'string' ? said.message : `The gateway answered with HTTP status ${status}`
  if (isErrorCode(code)) return new GatewayError(code, message)
  return new GatewayError(status === 401 ? 'token-invalid' : 'unreachable', message)
}

function parsed(body: Buffer): JsonObject {
  try {
    const value = parseJson(body)
    return isObject(value) ? value : {}
  } catch {
    return {}
  }
}

export function toListChanged(kind: 'tools' | 'prompts' | 'resources', params?: JsonObject): Buffer {
  const message = { jsonrpc: '2.0', method: `notifications/${kind}/list_changed`, ...(params && { params }) }
  return Buffer.from(JSON.stringify(message))
}

export function toUpdated(uri: string): Buffer {
  return Buffer.from(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri } }))
}

export const listKinds = ['tools', 'prompts', 'resources'] as const

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

/** One line of the program: what it is, and what has to be known of it to send it on. */
export type Message = {
  readonly line: Buffer
  readonly envelope: Envelope
  readonly era: Era
  readonly method: string
  readonly params: JsonObject
  /** What HTTP wants to see beside the body. */
  readonly headers: Readonly<Record<string, string>>
}

/** Throws a `JsonError` on what is not one message. */
export function readMessage(line: Buffer): Message {
  const envelope = readEnvelope(line)
  const method = 'method' in envelope ? envelope.method : ''
  const params = paramsOf(line, envelope)
  const revision = findNamedRevision(params)
  if (revision === undefined) return { line, envelope, era: 'legacy', method, params, headers: {} }
  const headers = { ...toModernHeaders(method, params), [versionHeader]: String(revision) }
  return { line, envelope, era: 'modern', method, params, headers }
}

/** What is wrong with them, the gateway says better. */
function paramsOf(line: Buffer, envelope: Envelope): JsonObject {
  if (!('params' in envelope) || envelope.params === undefined) return {}
  try {
    const params = parseJson(line.subarray(envelope.params.start, envelope.params.end))
    return isObject(params) ? params : {}
  } catch {
    return {}
  }
}

/** One id can be written in several ways. */
export function toIdKey(id: unknown): string {
  return JSON.stringify(id ?? null)
}

/** Whether these bytes are the answer to the request with this id, as it was written. */
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

/** The answer that a program gets for its request; none if it took the request back. */
export function toAnswer(reply: Reply, id: string): Buffer | undefined {
  const envelope = findEnvelope(reply.body)
  if (envelope?.kind === 'result') return reply.body
  if (envelope?.kind === 'error') {
    // A refusal before the request was read names no id.
    return envelope.id === id
      ? reply.body
      : toMessage(id, 'error', reply.body.subarray(envelope.span.start, envelope.span.end))
  }
  if (reply.status === 202) return undefined
  return toErrorMessage(id, toRefusal(reply))
}

/** What the gateway said instead of an answer, in the form of either of its interfaces. */
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

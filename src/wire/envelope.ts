import { JsonError, type Member, type Scan, scanObject } from '../lib/json.ts'

/** Positions of a value in the bytes of its message. */
export type Span = { readonly start: number; readonly end: number }

/** One JSON-RPC message, scanned but not parsed. `id` is the raw JSON text, so that `1` and `"1"` differ. */
export type Envelope =
  | { readonly kind: 'request'; readonly id: string; readonly method: string; readonly params: Span | undefined }
  | { readonly kind: 'notification'; readonly method: string; readonly params: Span | undefined }
  | { readonly kind: 'result'; readonly id: string; readonly span: Member }
  | { readonly kind: 'error'; readonly id: string; readonly span: Member }

/** Throws a `JsonError` on anything that is not exactly one JSON-RPC message. */
export function readEnvelope(bytes: Buffer, scan?: Scan): Envelope {
  const found = byKey(scanObject(bytes, scan, 'result'))
  if (!found.jsonrpc || !isVersion(bytes, found.jsonrpc)) throw new JsonError('invalid', 'Not JSON-RPC 2.0')
  const id = found.id && bytes.toString('utf8', found.id.start, found.id.end)
  if (found.method) return toCall(bytes, found.method, id, found.params)
  if (id === undefined) throw new JsonError('invalid', 'Neither a method nor an id')
  if (found.result && !found.error) return { kind: 'result', id, span: found.result }
  if (found.error && !found.result) return { kind: 'error', id, span: found.error }
  throw new JsonError('invalid', 'An answer needs either a result or an error')
}

type Known = 'jsonrpc' | 'id' | 'method' | 'params' | 'result' | 'error'
const known: ReadonlySet<string> = new Set<Known>(['jsonrpc', 'id', 'method', 'params', 'result', 'error'])

function isKnown(key: string): key is Known {
  return known.has(key)
}

/** Duplicate keys are refused, because two readers could use different values. */
function byKey(members: readonly Member[]): Partial<Record<Known, Member>> {
  const found: Partial<Record<Known, Member>> = {}
  for (const member of members) {
    if (!isKnown(member.key)) continue
    if (found[member.key]) throw new JsonError('invalid', `The key ${member.key} stands twice`)
    found[member.key] = member
  }
  return found
}

function isVersion(bytes: Buffer, { start, end }: Span): boolean {
  return bytes.toString('latin1', start, end) === '"2.0"'
}

function toCall(bytes: Buffer, method: Span, id: string | undefined, params: Span | undefined): Envelope {
  const name = parsed(bytes.toString('utf8', method.start, method.end))
  if (typeof name !== 'string') throw new JsonError('invalid', 'The method must be text')
  if (id === undefined) return { kind: 'notification', method: name, params }
  // The raw id is copied into the answer, so invalid text would break the answer.
  if (!isUsableId(parsed(id))) throw new JsonError('invalid', 'The id must be text or a number')
  return { kind: 'request', id, method: name, params }
}

function isUsableId(id: unknown): boolean {
  return typeof id === 'string' || typeof id === 'number'
}

/** Undefined for text that the scan accepts and a parser does not, such as a string with a raw line feed. */
function parsed(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}

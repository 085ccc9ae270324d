import { type Answer, createAnswer } from './answer.ts'

/** The answer without one of its members. All other bytes stay the same. */
export function dropMember(answer: Answer, key: string): Answer {
  const { bytes, kind } = answer
  const members = answer.members()
  const index = members.findIndex((member) => member.key === key)
  const member = members[index]
  if (!member) return answer
  const next = members[index + 1]
  const before = members[index - 1]
  const from = next ? member.keyStart : (before?.end ?? member.keyStart)
  const to = next ? next.keyStart : member.end
  return createAnswer(kind, Buffer.concat([bytes.subarray(0, from), bytes.subarray(to)]))
}

/** The answer with further members at the beginning, given as JSON text: `"key":value`. */
export function addMembers(answer: Answer, members: readonly string[]): Answer {
  if (members.length === 0) return answer
  const open = answer.bytes.indexOf(0x7b)
  const separator = answer.members().length > 0 ? ',' : ''
  const text = Buffer.from(`${members.join(',')}${separator}`)
  const bytes = Buffer.concat([answer.bytes.subarray(0, open + 1), text, answer.bytes.subarray(open + 1)])
  return createAnswer(answer.kind, bytes)
}

/** A whole JSON-RPC message around a payload that is JSON already, with the raw id of the caller. */
export function toMessage(id: string, kind: Answer['kind'], payload: Buffer): Buffer {
  return Buffer.concat(toPieces(id, kind, payload))
}

/** The same in pieces, so that a large payload is not copied. */
export function toPieces(id: string, kind: Answer['kind'], payload: Buffer): readonly Buffer[] {
  return [Buffer.from(`{"jsonrpc":"2.0","id":${id},"${kind}":`), payload, closing]
}

const closing = Buffer.from('}')

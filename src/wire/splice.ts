import type { Answer } from './answer.ts'

/** The answer's object without one of its members; everything else keeps its bytes. */
export function dropMember(answer: Answer, key: string): Buffer {
  const { bytes } = answer
  const members = answer.members()
  const index = members.findIndex((member) => member.key === key)
  const member = members[index]
  if (!member) return bytes
  const next = members[index + 1]
  if (next) return Buffer.concat([bytes.subarray(0, member.keyStart), bytes.subarray(next.keyStart)])
  const before = members[index - 1]
  const from = before ? before.end : member.keyStart
  return Buffer.concat([bytes.subarray(0, from), bytes.subarray(member.end)])
}

/** The answer's object with further members in front, given as JSON text: `"key":value`. */
export function addMembers(answer: Answer, members: readonly string[]): Buffer {
  if (members.length === 0) return answer.bytes
  const open = answer.bytes.indexOf(0x7b)
  const separator = answer.members().length > 0 ? ',' : ''
  const text = Buffer.from(`${members.join(',')}${separator}`)
  return Buffer.concat([answer.bytes.subarray(0, open + 1), text, answer.bytes.subarray(open + 1)])
}

/** A whole JSON-RPC message around bytes that already are JSON; the caller's id is put back as it came. */
export function toMessage(id: string, kind: Answer['kind'], payload: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`{"jsonrpc":"2.0","id":${id},"${kind}":`), payload, closing])
}

const closing = Buffer.from('}')

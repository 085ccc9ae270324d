import type { JsonObject, JsonValue } from '../contract/json.ts'
import { isObject, type Member, parseJson, scanObject } from '../lib/json.ts'

/** The answer of a server, as bytes. It is parsed only when a value inside is needed. */
export type Answer = {
  readonly kind: 'result' | 'error'
  /** The JSON of the result or of the error object, without the envelope. */
  readonly bytes: Buffer
  /** Number of secret values that were masked in it. */
  readonly masked: number
  /** The members of the object, as positions in `bytes`. */
  members(): readonly Member[]
  value(): JsonObject
}

/** `known`: the members, if the reader or writer of the bytes has them already. */
export function createAnswer(kind: Answer['kind'], bytes: Buffer, known?: readonly Member[], masked = 0): Answer {
  let members = known
  let value: JsonObject | undefined
  return {
    kind,
    bytes,
    masked,
    members() {
      members ??= scanObject(bytes)
      return members
    },
    value() {
      value ??= toObject(parseJson(bytes))
      return value
    },
  }
}

export function toResultAnswer(result: JsonObject): Answer {
  return createAnswer('result', Buffer.from(JSON.stringify(result)))
}

/** The raw JSON of one member of the result; undefined if it is missing. */
export function memberText(answer: Answer, key: string): string | undefined {
  const member = answer.members().find((candidate) => candidate.key === key)
  return member && answer.bytes.toString('utf8', member.start, member.end)
}

/** A failure that the tool reports. It is a result that the model can read. */
export function isToolError(answer: Answer): boolean {
  return answer.kind === 'result' && memberText(answer, 'isError') === 'true'
}

function toObject(value: JsonValue): JsonObject {
  if (isObject(value)) return value
  throw new TypeError('An answer is an object')
}

/** The members of a value inside a message, as positions in the value's own bytes. */
export function toOwnMembers(value: Member): readonly Member[] | undefined {
  const { members, start } = value
  return members?.map((each) => ({
    key: each.key,
    keyStart: each.keyStart - start,
    start: each.start - start,
    end: each.end - start,
  }))
}

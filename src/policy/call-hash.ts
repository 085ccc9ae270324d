import { hash } from 'node:crypto'
import type { JsonObject } from '../contract/json.ts'
import { toCanonicalText } from '../lib/canonical.ts'

/** The parts of a call that an approval is valid for. If one of them differs, the approval does not apply. */
export type HashedCall = {
  readonly principal: string
  readonly method: string
  readonly connection: string
  /** Hash of the server's definition, which contains the address and the names of secrets. */
  readonly credential: string
  readonly tool: string
  /** The hash of the tool's live definition. */
  readonly definition: string
  readonly arguments: JsonObject
  /** `_meta` that is sent with the call, without its trace context. */
  readonly meta?: JsonObject | undefined
  /** Answers to a server's questions that are sent with the call. */
  readonly input?: JsonObject | undefined
}

export function toCallHash(call: HashedCall): string {
  return hash('sha256', toCanonicalText(call), 'hex')
}

/** For grants that allow exactly one set of arguments, or exactly one `_meta`. */
export function hashOf(given: JsonObject): string {
  return hash('sha256', toCanonicalText(given), 'hex')
}

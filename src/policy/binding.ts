import { hash } from 'node:crypto'
import type { JsonObject } from '../contract/json.ts'
import { toCanonicalText } from '../lib/canonical.ts'

/** All that an approval is for. If any of it differs when the call would run, it is another call. */
export type Binding = {
  readonly principal: string
  readonly method: string
  /** The connection and what it is made of: where the call goes, and with which credential. */
  readonly connection: string
  readonly credential: string
  readonly tool: string
  /** The hash of the tool's live definition. */
  readonly definition: string
  readonly arguments: JsonObject
  /** `_meta` that is sent with the call, without its trace context. */
  readonly meta?: JsonObject | undefined
  /** Answers to a server's own questions that travel with the call. */
  readonly input?: JsonObject | undefined
}

export function bindingOf(binding: Binding): string {
  return hash('sha256', toCanonicalText(binding), 'hex')
}

/** For a grant that permits exactly one set of arguments, or exactly one `_meta`. */
export function hashOf(given: JsonObject): string {
  return hash('sha256', toCanonicalText(given), 'hex')
}

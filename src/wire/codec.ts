import type { JsonObject } from '../contract/json.ts'
import type { Peer } from './peer.ts'

/** The two ways in which MCP is spoken: with sessions, and stateless. */
export type Era = 'legacy' | 'modern'

export type Implementation = { readonly name: string; readonly version: string }

/** What a server says of itself when a link opens. */
export type ServerFacts = {
  readonly era: Era
  readonly revision: string
  readonly capabilities: JsonObject
  readonly serverInfo: Implementation | undefined
  readonly instructions: string | undefined
}

/** How requests towards a server are written in one era. */
export type ServerCodec = {
  readonly era: Era
  /** The conversation's first words. */
  open(peer: Peer, options: { signal: AbortSignal; timeoutMs: number }): Promise<ServerFacts>
  /** Puts into `_meta` what the era wants to find there. */
  shape(params: JsonObject, own: { progressToken: number | undefined; meta: JsonObject | undefined }): JsonObject
  /** Headers that HTTP carries beside the body. */
  headers(method: string | undefined, params: JsonObject): Record<string, string>
  /** On HTTP: whether closing the answer's stream is the way to cancel. */
  readonly cancelsByClosing: boolean
  /** What proves that an idle link is alive. */
  readonly liveness: 'ping' | 'tools/list'
}

export const gatewayName = 'sallyport'

import type { JsonObject } from '../contract/json.ts'
import type { Caller } from './caller.ts'
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
  shape(params: JsonObject, own: OwnMeta): JsonObject
  /** Headers that HTTP carries beside the body; `mirrored` repeats arguments, where the era wants that. */
  headers(
    method: string | undefined,
    params: JsonObject,
    mirrored?: Readonly<Record<string, string>>,
  ): Record<string, string>
  /** On HTTP: whether closing the answer's stream is the way to cancel. */
  readonly cancelsByClosing: boolean
  /** What proves that an idle link is alive. */
  readonly liveness: 'ping' | 'tools/list'
}

/** What travels with one request beside its parameters. */
export type OwnMeta = {
  readonly progressToken?: number | undefined
  readonly meta?: JsonObject | undefined
  readonly caller?: Caller | undefined
}

/** What the gateway says of itself to agents. */
export type GatewayFacts = {
  readonly capabilities: JsonObject
  readonly version: string
  readonly instructions: string | undefined
}

/** What the newer era calls its tasks; those of the older one are something else. */
export const tasksExtension = 'io.modelcontextprotocol/tasks'

/** The key of `_meta` under which a request of the newer era says what its sender can do. */
export const capabilitiesKey = 'io.modelcontextprotocol/clientCapabilities'

/** The key of `_meta` under which a message of the older era names the task it belongs to. */
export const relatedTaskKey = 'io.modelcontextprotocol/related-task'

/** The key of `_meta` under which a message of the newer era names the request that listens for it. */
export const subscriptionKey = 'io.modelcontextprotocol/subscriptionId'

export const gatewayName = 'sallyport'

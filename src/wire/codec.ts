import type { JsonObject } from '../contract/json.ts'
import type { Caller } from './caller.ts'
import type { Peer } from './peer.ts'

/** The two eras of MCP: `legacy` with MCP sessions, `modern` without. */
export type Era = 'legacy' | 'modern'

export type Implementation = { readonly name: string; readonly version: string }

/** The description that a server gives of itself when a link opens. */
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
  /** The first request on a link. */
  open(peer: Peer, options: { signal: AbortSignal; timeoutMs: number }): Promise<ServerFacts>
  /** Adds the keys that the era requires in `_meta`. */
  shape(params: JsonObject, own: OwnMeta): JsonObject
  /** HTTP headers. `mirrored` are arguments that the era repeats in headers. */
  headers(
    method: string | undefined,
    params: JsonObject,
    mirrored?: Readonly<Record<string, string>>,
  ): Record<string, string>
  /** On HTTP: whether a request is cancelled by closing the stream of its answer. */
  readonly cancelsByClosing: boolean
  /** The request that checks an idle link. */
  readonly liveness: 'ping' | 'tools/list'
}

/** Data of one request in addition to its parameters. */
export type OwnMeta = {
  readonly progressToken?: number | undefined
  readonly meta?: JsonObject | undefined
  readonly caller?: Caller | undefined
}

/** The description of the gateway for agents. */
export type GatewayFacts = {
  readonly capabilities: JsonObject
  readonly version: string
  readonly instructions: string | undefined
}

/** Name of the extension for tasks in the newer era. Tasks of the older era are not compatible. */
export const tasksExtension = 'io.modelcontextprotocol/tasks'

/** The key of `_meta` with the capabilities of the sender, in the newer era. */
export const capabilitiesKey = 'io.modelcontextprotocol/clientCapabilities'

/** The key of `_meta` with the task that a message belongs to, in the older era. */
export const relatedTaskKey = 'io.modelcontextprotocol/related-task'

/** The key of `_meta` with the subscription that a message belongs to, in the newer era. */
export const subscriptionKey = 'io.modelcontextprotocol/subscriptionId'

export const gatewayName = 'sallyport'

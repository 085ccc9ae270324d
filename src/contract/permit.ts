import type { CallEndState } from './call.ts'
import type { JsonObject } from './json.ts'
import type { PrincipalKey } from './principal.ts'
import type { Risk } from './risk.ts'
import type { ScopeKey } from './scope.ts'

export type Surface = 'mcp' | 'http' | 'library'

/** MCP methods that the gateway sends to a server for a caller. */
export type CallMethod =
  | 'tools/call'
  | 'prompts/get'
  | 'resources/read'
  | 'resources/subscribe'
  | 'completion/complete'
  | TaskMethod

/** Methods for tasks, which continue after their call was answered. Contains the names of both generations of the protocol. */
export type TaskMethod = 'tasks/get' | 'tasks/result' | 'tasks/update' | 'tasks/cancel'

export function isTaskMethod(method: string): method is TaskMethod {
  return method === 'tasks/get' || method === 'tasks/result' || method === 'tasks/update' || method === 'tasks/cancel'
}

export type Recorded = {
  readonly arguments: JsonObject
  readonly tool: string
  readonly original: string
  readonly meta?: JsonObject | undefined
}

/** A call whose target was found in the catalog and about which the rules have decided. */
export type ResolvedCall = {
  readonly id: string
  readonly method: CallMethod
  readonly principal: PrincipalKey
  readonly principalId: string
  /** The user who owns the principal. */
  readonly owner?: string
  readonly surface: Surface
  /** Id of the connection to the server. `server` and `scope` identify the server for people. */
  readonly connection: string
  readonly server: string
  readonly scope: ScopeKey
  /** Public name of the tool. `original` is the name that the server gave it. */
  readonly tool: string
  readonly original: string
  readonly arguments: JsonObject
  /** The masked values for the audit record; set if the call contains secrets. */
  readonly recorded?: Recorded
  readonly risk: Risk
  /** Why the call was allowed, asked about or denied, in words. */
  readonly decision: string
  readonly startedAt: number
  /** Start by the monotonic clock, for the duration. Undefined if the call began in another process or waited for approval. */
  readonly begun?: number | undefined
  /** `_meta` for the server without trace context. Rules, approvals and the audit record treat it like the arguments. */
  readonly meta?: JsonObject
  /** W3C trace context: sent and recorded, but not part of what an approval is valid for. */
  readonly trace?: JsonObject
  /** The caller's replies to questions that the server asked in an earlier answer, and the request state of that answer. */
  readonly input?: JsonObject
  /** Arguments that are repeated in HTTP headers, by header name. */
  readonly mirrored?: Readonly<Record<string, string>>
  /** Idempotency key: of the caller's calls with the same key only one runs. */
  readonly once?: OnceKey
  /** The server limits the length of its answers itself, so they are not cut. */
  readonly uncut?: true
  /** The grant or approval that allows a call for which a rule requires approval. The claim uses it in the same commit. */
  readonly permission?: Permission
}

/** The caller's `_meta` that is sent to the server, with trace context. */
export function toSentMeta({ meta, trace }: { meta?: JsonObject | undefined; trace?: JsonObject | undefined }) {
  return trace === undefined ? meta : { ...meta, ...trace }
}

/** The sent `_meta` as the audit record contains it: masked. */
export function toRecordedMeta(call: ResolvedCall): JsonObject | undefined {
  return call.recorded ? call.recorded.meta : toSentMeta(call)
}

export type Permission = { readonly grant: string } | { readonly approval: string }

export type OnceKey = {
  readonly key: string
  /** Hash of the tool and its arguments. The same key with another hash is an error. */
  readonly hash: string
}

declare const claimed: unique symbol

/** Proof that the claim of this call is stored. Only `storage/claim.ts` creates permits. */
export type Permit = ResolvedCall & { readonly [claimed]: true }

/** How a call ended. Exactly one end is written for each call. */
export type CallEnd = {
  readonly state: CallEndState
  readonly endedAt: number
  readonly durationMs: number
  readonly error?: { readonly code: string; readonly message: string }
  readonly resultBytes?: number
  /** Bytes that the caller got of a result that was cut. */
  readonly givenBytes?: number
  readonly resent?: boolean
  /** Number of secret values that were masked in the answer. */
  readonly masked?: number
  /** True if it is certain that nothing of the call reached the server. */
  readonly unsent?: boolean
}

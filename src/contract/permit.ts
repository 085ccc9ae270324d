import type { CallEndState } from './call.ts'
import type { JsonObject } from './json.ts'
import type { PrincipalKey } from './principal.ts'
import type { Risk } from './risk.ts'
import type { ScopeKey } from './scope.ts'

export type Surface = 'mcp' | 'http' | 'library'

/** What may be asked of a server on behalf of a caller. */
export type CallMethod =
  | 'tools/call'
  | 'prompts/get'
  | 'resources/read'
  | 'resources/subscribe'
  | 'completion/complete'
  | TaskMethod

/** About work that goes on after its call was answered: the names of both eras. */
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

/** A call whose name was found in the catalog and whose decision stands. */
export type ResolvedCall = {
  readonly id: string
  readonly method: CallMethod
  readonly principal: PrincipalKey
  readonly principalId: string
  /** The user on whose behalf it is made. */
  readonly owner?: string
  readonly surface: Surface
  /** The connection that carries it, and the server's name and scope for people. */
  readonly connection: string
  readonly server: string
  readonly scope: ScopeKey
  /** Public name, and the server's own. */
  readonly tool: string
  readonly original: string
  readonly arguments: JsonObject
  /** How it stands in the record, where it holds what must be hidden there. */
  readonly recorded?: Recorded
  readonly risk: Risk
  /** What decided, in words. */
  readonly decision: string
  readonly startedAt: number
  /** By the monotonic clock, for the duration; absent when the call began in another process or waited for a person. */
  readonly begun?: number | undefined
  /** `_meta` for the server without its trace context: judged, bound, shown and recorded like the arguments. */
  readonly meta?: JsonObject
  /** W3C trace context: sent and recorded, but not bound by an approval. */
  readonly trace?: JsonObject
  /** Answers to questions of an earlier round that the caller brings along, and the state of that round. */
  readonly input?: JsonObject
  /** What HTTP repeats of the arguments, by header. */
  readonly mirrored?: Readonly<Record<string, string>>
  /** The caller's key: among its calls with the same one, one runs. */
  readonly once?: OnceKey
  /** What lets it run although a rule asks: used up in the same commit in which it is claimed. */
  readonly permission?: Permission
}

/** All of the caller's `_meta` that is sent. */
export function toSentMeta({ meta, trace }: { meta?: JsonObject | undefined; trace?: JsonObject | undefined }) {
  return trace === undefined ? meta : { ...meta, ...trace }
}

/** The same as it stands in the record. */
export function toRecordedMeta(call: ResolvedCall): JsonObject | undefined {
  return call.recorded ? call.recorded.meta : toSentMeta(call)
}

export type Permission = { readonly grant: string } | { readonly question: string }

export type OnceKey = {
  readonly key: string
  /** Of the tool and its arguments: the same key with others is a mistake. */
  readonly hash: string
}

declare const claimed: unique symbol

/** Proof that the claim of this call stands in storage. Only `storage/claim.ts` makes one. */
export type Permit = ResolvedCall & { readonly [claimed]: true }

/** How a call ended; exactly one is written for each call. */
export type CallEnd = {
  readonly state: CallEndState
  readonly endedAt: number
  readonly durationMs: number
  readonly error?: { readonly code: string; readonly message: string }
  readonly resultBytes?: number
  /** Of a result that was cut: what the caller got of it. */
  readonly givenBytes?: number
  readonly resent?: boolean
  /** How many hidden values the answer held. */
  readonly masked?: number
  /** Certainly nothing of it reached the server. */
  readonly unsent?: boolean
}

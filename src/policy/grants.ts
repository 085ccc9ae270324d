import type { Grant } from '../contract/grant.ts'
import type { JsonObject } from '../contract/json.ts'
import type { ScopeKey } from '../contract/scope.ts'
import { matchesGlob } from '../lib/glob.ts'
import { hashOf } from './binding.ts'
import { fulfils, toConditions } from './conditions.ts'
import type { Subject } from './decide.ts'

/** A call as grants look at it. */
export type Grantee = Subject & {
  readonly principalId: string
  /** The hash of the tool's live definition. */
  readonly definition: string
  /** `_meta` without its trace context. */
  readonly bound?: JsonObject | undefined
  /** The call brings answers to questions of the server. */
  readonly bringsAnswers?: boolean | undefined
  /** Every scope whose settings hold for the caller. */
  readonly scopes: readonly ScopeKey[]
}

/** The grants that permit a call, the one that ends first first: what would be lost anyway is spent before the rest. */
export function findGrants(grants: readonly Grant[], call: Grantee): Grant[] {
  if (call.drifted !== undefined) return []
  return grants.filter((grant) => covers(grant, call)).sort((a, b) => Date.parse(a.expiresAt) - Date.parse(b.expiresAt))
}

function covers(grant: Grant, call: Grantee): boolean {
  if (grant.revokedAt !== undefined || grant.used >= grant.budget) return false
  if (Date.parse(grant.expiresAt) <= call.now) return false
  if (!isFor(grant, call) || !coversTool(grant, call)) return false
  if (grant.exactly !== undefined && grant.exactly !== hashOf(call.arguments)) return false
  // Answers to a server's own question decide what the call does, and no grant was given for them.
  if (call.bringsAnswers) return false
  // Conditions on arguments say nothing about `_meta`, so a grant is for exactly one, or for calls without any.
  if (grant.meta !== (call.bound && hashOf(call.bound))) return false
  return toConditions(grant.arguments ?? {}).every((condition) => fulfils(condition, call.arguments))
}

function isFor({ principal, principalId, scope }: Grant, call: Grantee): boolean {
  if (principal !== undefined && principal !== call.principal) return false
  // Given to an agent or user that was removed; another one has the name now.
  if (principalId !== undefined && principalId !== call.principalId) return false
  if (scope !== undefined && !call.scopes.some((each) => each === scope)) return false
  return principal !== undefined || scope !== undefined
}

/** Danger is permitted by its own name only, and a tool that was changed since is another tool. */
function coversTool({ tools, definitions }: Grant, call: Grantee): boolean {
  const named = tools === call.tool || (call.risk !== 'danger' && matchesGlob(tools, call.tool))
  const known = definitions?.[call.tool]
  return named && (known === undefined || known === call.definition)
}

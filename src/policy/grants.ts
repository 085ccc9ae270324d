import type { Grant } from '../contract/grant.ts'
import type { JsonObject } from '../contract/json.ts'
import type { ScopeKey } from '../contract/scope.ts'
import { matchesGlob } from '../lib/glob.ts'
import { hashOf } from './call-hash.ts'
import { fulfils, toConditions } from './conditions.ts'
import type { Subject } from './decide.ts'

/** The properties of a call that grants can match. */
export type Grantee = Subject & {
  readonly principalId: string
  /** The hash of the tool's live definition. */
  readonly definition: string
  /** `_meta` without its trace context. */
  readonly bound?: JsonObject | undefined
  /** The call contains answers to questions of the server. */
  readonly bringsAnswers?: boolean | undefined
  /** Every scope whose settings apply to the caller. */
  readonly scopes: readonly ScopeKey[]
}

/** The grants that allow a call, sorted by expiry, so that the grant that expires first is used first. */
export function findGrants(grants: readonly Grant[], call: Grantee): Grant[] {
  if (call.drifted !== undefined) return []
  return grants.filter((grant) => covers(grant, call)).sort((a, b) => Date.parse(a.expiresAt) - Date.parse(b.expiresAt))
}

function covers(grant: Grant, call: Grantee): boolean {
  if (grant.revokedAt !== undefined || grant.used >= grant.budget) return false
  if (Date.parse(grant.expiresAt) <= call.now) return false
  if (!isFor(grant, call) || !coversTool(grant, call)) return false
  if (grant.exactly !== undefined && grant.exactly !== hashOf(call.arguments)) return false
  // The answers to a server's question decide what the call does, and a grant does not cover them.
  if (call.bringsAnswers) return false
  // Conditions cover only arguments. So a grant is valid for exactly one `_meta`, or for calls without `_meta`.
  if (grant.meta !== (call.bound && hashOf(call.bound))) return false
  return toConditions(grant.arguments ?? {}).every((condition) => fulfils(condition, call.arguments))
}

function isFor({ principal, principalId, scope }: Grant, call: Grantee): boolean {
  if (principal !== undefined && principal !== call.principal) return false
  // The grant was given to a removed agent or user, and another one has the name now.
  if (principalId !== undefined && principalId !== call.principalId) return false
  if (scope !== undefined && !call.scopes.some((each) => each === scope)) return false
  return principal !== undefined || scope !== undefined
}

/** A danger tool must be named exactly, without a glob. A tool whose definition changed since the grant is not covered. */
function coversTool({ tools, definitions }: Grant, call: Grantee): boolean {
  const named = tools === call.tool || (call.risk !== 'danger' && matchesGlob(tools, call.tool))
  const known = definitions?.[call.tool]
  return named && (known === undefined || known === call.definition)
}

import type { Principal } from '../contract/principal.ts'
import { type Scope, type ScopeKey, toScope } from '../contract/scope.ts'

/** Which user owns which project, session or scope, from identity and configuration. */
export type Ownership = {
  /** The id of the user with this name. */
  findUserId(user: string): string | undefined
  ownsProject(project: string, user: string): boolean
  /** The user behind a session. */
  ownerOf(session: string): string | undefined
  /** Whether only administrators can write to a scope. */
  trusts(scope: ScopeKey): boolean
}

/**
 * The scopes whose secrets a text may use, narrowest first. A text may only use secrets that its author may give away:
 * a scope that only administrators write may use global secrets, a session may use the secrets of its user.
 */
export function usableScopes(
  author: ScopeKey,
  { ownerOf, trusts }: Pick<Ownership, 'ownerOf' | 'trusts'>,
): readonly ScopeKey[] {
  const scope = toScope(author)
  if (scope.kind === 'global') return [author]
  if (trusts(author)) return [author, 'global']
  const owner = scope.kind === 'session' ? ownerOf(scope.name) : undefined
  return owner === undefined ? [author] : [author, `user:${owner}`]
}

/** Whether a principal may set and remove the secrets of a scope. */
export function mayChange(principal: Principal, scope: Scope, owners: Ownership): boolean {
  if (principal.kind !== 'user' || principal.role === 'auditor') return false
  if (principal.role === 'administrator') return true
  if (scope.kind === 'user') return scope.name === principal.name
  if (scope.kind === 'project') return owners.ownsProject(scope.name, principal.name)
  return scope.kind === 'session' && owners.ownerOf(scope.name) === principal.name
}

import { z } from 'zod'

/** The kinds of scopes, in order: settings of a later scope refine those of earlier scopes. */
export const scopeKinds = ['global', 'project', 'agent', 'automation', 'user', 'session'] as const
export const ScopeKind = z.enum(scopeKinds)
export type ScopeKind = z.infer<typeof ScopeKind>

/** `global` has no name. Of every other kind there can be several scopes, each with a name. */
export type Scope = { readonly kind: 'global' } | { readonly kind: Exclude<ScopeKind, 'global'>; readonly name: string }

export type ScopeKey = 'global' | `${Exclude<ScopeKind, 'global'>}:${string}`

export const globalScope: Scope = { kind: 'global' }

export function toScopeKey(scope: Scope): ScopeKey {
  return scope.kind === 'global' ? 'global' : `${scope.kind}:${scope.name}`
}

export function toScope(key: ScopeKey): Scope {
  if (key === 'global') return globalScope
  const colon = key.indexOf(':')
  const kind = ScopeKind.exclude(['global']).parse(key.slice(0, colon))
  return { kind, name: key.slice(colon + 1) }
}

/**
 * A text for stored rows that a later user with the same name does not match. Names of sessions are never used twice, and a
 * removal of a project removes its rows. Names of users contain no `~`.
 */
export function toScopeId(key: ScopeKey, findUserId: (name: string) => string | undefined): string {
  const scope = toScope(key)
  return scope.kind === 'user' ? `user:${findUserId(scope.name) ?? `~${scope.name}`}` : key
}

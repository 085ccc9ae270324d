import type { Config, ScopedServer } from '../contract/config.ts'
import { type Scope, type ScopeKey, toScopeKey } from '../contract/scope.ts'
import { own } from '../documents/values.ts'
import type { EffectiveServer } from './merge.ts'

/**
 * The scope of the user who alone is affected by what a chain of scopes allows: the user, or an owned agent or session.
 * Undefined in projects and automations, where calls are made for other people too, and with `members.trustOwn: false`.
 * Needs the whole chain: a project without settings counts.
 */
export function findOwnScope({ members }: Pick<Config, 'members'>, chain: readonly Scope[]): ScopeKey | undefined {
  if (!members.trustOwn || chain.some(({ kind }) => kind === 'project' || kind === 'automation')) return undefined
  const user = chain.find(({ kind }) => kind === 'user')
  return user && toScopeKey(user)
}

/** Whether the user wrote every value of the server. An override of an inherited server is not enough. */
function isOwnServer({ scope, origins }: EffectiveServer, user: ScopeKey): boolean {
  return scope === user && Object.values(origins).every((origin) => origin === user)
}

type OwnParts = {
  readonly user: ScopeKey
  /** The entries of the user. */
  readonly stated: Readonly<Record<string, ScopedServer>>
  /** The servers of earlier scopes. Rules of other people may be about their names. */
  readonly earlier: ReadonlyMap<string, EffectiveServer>
}

/** Believes the annotations of the user's own servers, except where the user has set `trust`. */
export function withOwnTrust(
  servers: ReadonlyMap<string, EffectiveServer>,
  { user, stated, earlier }: OwnParts,
): ReadonlyMap<string, EffectiveServer> {
  return new Map(
    [...servers].map(([name, server]) => {
      const isOwn = !earlier.has(name) && isOwnServer(server, user)
      if (!isOwn || own(stated, name)?.trust !== undefined) return [name, server]
      return [name, { ...server, definition: { ...server.definition, trust: 'annotations' as const } }]
    }),
  )
}

import type { Principal } from '../contract/principal.ts'
import type { Scope, ScopeKey } from '../contract/scope.ts'
import type { ServerDefinition } from '../contract/server.ts'
import { type EffectiveServer, type Origins, originOf } from './merge.ts'
import { findOwnScope } from './own-servers.ts'
import {
  type ConnectionSpec,
  connections,
  type EffectiveConfig,
  effective,
  isStated,
  isTrusted,
  listServers,
  type Settings,
  scopesOf,
  toChainKey,
} from './scopes.ts'
import {
  createEnvironmentLookup,
  isOwnVariable,
  resolveDefinition,
  toMissingError,
  type Variables,
} from './templates.ts'

/** Another source of values besides the environment, and a listener for the values that were used. */
export type Beside = {
  /** Called before the environment. `author` is the scope that wrote the text at this dotted key. */
  find(name: string, author: ScopeKey, key: string): string | undefined
  onVariable(name: string, value: string): void
}

/** Values derived from the configuration, the agents and the sessions. */
export type Views = {
  readonly settings: Settings
  effective(principal: Principal): EffectiveConfig
  along(scopes: readonly Scope[]): EffectiveConfig
  connections(): readonly ConnectionSpec[]
  servers(): readonly EffectiveServer[]
}

/** Each view is computed at its first use. */
export function createViews(settings: Settings): Views {
  const known = new Map<string, EffectiveConfig>()
  /** A cache by object: the principal of a token is the same object in every call. */
  const byPrincipal = new WeakMap<Principal, EffectiveConfig>()
  let specs: readonly ConnectionSpec[] | undefined
  let servers: readonly EffectiveServer[] | undefined

  function along(wanted: readonly Scope[]): EffectiveConfig {
    // Agents without settings share one view, so that many different names cannot fill the memory.
    const scopes = wanted.filter((scope) => isStated(settings, scope))
    // Found in the whole chain, because a project without settings is left out of the view.
    const ownScope = findOwnScope(settings, wanted)
    const key = ownScope === undefined ? toChainKey(scopes) : `${toChainKey(scopes)} own`
    const view = known.get(key) ?? effective(settings, scopes, ownScope)
    known.set(key, view)
    return view
  }

  return {
    settings,
    effective(principal) {
      const seen = byPrincipal.get(principal)
      if (seen !== undefined) return seen
      const view = along(scopesOf(settings, principal))
      byPrincipal.set(principal, view)
      return view
    },
    along,
    connections() {
      specs ??= connections(settings)
      return specs
    },
    servers() {
      servers ??= listServers(settings)
      return servers
    },
  }
}

export type WantedDefinition = { definition: ServerDefinition; origins: Origins; beside: Beside | undefined }

/** `unused`: the `.env` file beside the configuration, if it exists and is not the `envFile`. */
export type Readable = Variables & { readonly unused: () => string | undefined }

export function resolveWith(readable: Readable, settings: Settings, wanted: WantedDefinition): ServerDefinition {
  const { definition, origins, beside } = wanted
  const variables = createEnvironmentLookup(readable.environment, readable.listed)
  const withheld = new Set<string>()
  const resolved = resolveDefinition(definition, (name, key) => {
    const origin = originOf(origins, key)
    const found = origin === undefined || isOwnVariable(name) ? undefined : beside?.find(name, origin, key)
    if (found !== undefined) return found
    // A user who may choose the address could read any variable by naming it in a header.
    if (origin === undefined || !isTrusted(settings, origin)) {
      withheld.add(name)
      return undefined
    }
    const value = variables(name)
    if (value !== undefined) beside?.onVariable(name, value)
    return value
  })
  if (resolved.missing.length > 0)
    throw toMissingError(resolved.missing, { ...readable, unused: readable.unused() }, withheld)
  return resolved.definition
}

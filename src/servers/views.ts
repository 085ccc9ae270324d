import { type ConfigStore, type EffectiveServer, originOf, type Place, seesDefinition } from '../config/config.ts'
import { GatewayError } from '../contract/errors.ts'
import type { Principal } from '../contract/principal.ts'
import { globalScope, type Scope, type ScopeKey, toScope, toScopeKey } from '../contract/scope.ts'
import type { Server, ServerDetail } from '../contract/server.ts'
import type { SetAside, Tool } from '../contract/tool.ts'
import { nearest } from '../lib/text.ts'
import type { ServerLinkStatus, Servers } from './servers.ts'

type ServerViewsParts = {
  readonly config: ConfigStore
  readonly servers: Pick<Servers, 'list' | 'find'>
  readonly catalog: OfferedTools
}

/** What the tools of servers look like to people, from the catalog. */
export type OfferedTools = {
  /** What a connection has listed: how many tools are usable, and which are not. */
  ofConnection(id: string): { readonly tools: readonly unknown[]; readonly setAside: readonly SetAside[] }
  /** What one configured server offers under the choice of its scope. */
  offered(server: EffectiveServer, connection: string): { tools: Tool[]; setAside: SetAside[] }
}

/** A server as it holds in a scope, and the connection that carries it. */
export type FoundServer = { readonly entry: EffectiveServer; readonly status: ServerLinkStatus }

/** Somebody who looks; nobody named means the program that the gateway is part of, which sees everything. */
type Onlooker = Principal | undefined

export type ServerViews = {
  list(by?: Onlooker, scope?: ScopeKey): Server[]
  /** The scope that is meant by a name: the one that was given, else the one in which it stands. */
  scopeOf(by: Onlooker, name: string, scope: ScopeKey | undefined): Scope
  get(by: Onlooker, name: string, scope: Scope): FoundServer
  toDetail(by: Onlooker, found: FoundServer): ServerDetail
  /** Whether definitions of a scope are shown. */
  sees(by: Onlooker, scope: ScopeKey): boolean
  /** Whether names, states and tools of a scope are shown. */
  isVisible(by: Onlooker, scope: ScopeKey): boolean
  toPlace(scope: ScopeKey | Scope): Place
}

/** What of the servers somebody gets to see: those of the scopes they work under, and definitions where they may change them. */
export function createServerViews({ config, servers, catalog }: ServerViewsParts): ServerViews {
  return { list, scopeOf, get, toDetail, sees, isVisible: (by, scope) => visibleTo(by)(scope), toPlace }

  function toPlace(scope: ScopeKey | Scope): Place {
    const place = typeof scope === 'string' ? toScope(scope) : scope
    return { scope: place, owner: config.ownerOf(place) }
  }

  function sees(by: Onlooker, scope: ScopeKey): boolean {
    return by === undefined || seesDefinition(by, toPlace(scope), config.current())
  }

  function visibleTo(by: Onlooker): (scope: ScopeKey) => boolean {
    if (by === undefined) return () => true
    const used = config.usedBy(by)
    return (scope) => used.has(scope) || sees(by, scope)
  }

  function list(by?: Onlooker, scope?: ScopeKey): Server[] {
    const isVisible = visibleTo(by)
    const wanted = scope && toScopeKey(named(by, scope))
    return servers
      .list()
      .filter((status) => wanted === undefined || status.scope === wanted)
      .filter((status) => isVisible(status.scope))
      .map((status) => {
        const judged = catalog.ofConnection(status.id)
        return { ...forOnlooker(by, status), tools: judged.tools.length, setAside: judged.setAside.length }
      })
  }

  /** What a program wrote is shown to those who may read its logs. */
  function forOnlooker(by: Onlooker, status: ServerLinkStatus): ServerLinkStatus {
    if (!status.error?.output || sees(by, status.scope)) return status
    const { output: _output, ...error } = status.error
    return { ...status, error }
  }

  function scopeOf(by: Onlooker, name: string, scope: ScopeKey | undefined): Scope {
    if (scope !== undefined) return named(by, scope)
    const isVisible = visibleTo(by)
    const stating = config
      .scopes()
      .filter((candidate) => Object.hasOwn(config.statedIn(candidate).servers, name))
      .filter((candidate) => isVisible(toScopeKey(candidate)))
    const [only, ...others] = stating
    const own = stating.find(({ kind }) => kind === 'user')
    if (by !== undefined && own !== undefined && !sees(by, 'global')) return own
    if (stating.some(({ kind }) => kind === 'global')) return globalScope
    return only !== undefined && others.length === 0 ? only : globalScope
  }

  function get(by: Onlooker, name: string, scope: Scope): FoundServer {
    const entry = visibleTo(by)(toScopeKey(scope)) ? config.effectiveIn(scope).servers.get(name) : undefined
    const status = entry && servers.find(entry.connection)
    if (entry && status) return { entry, status }
    const suggestion = nearest(name, [...new Set(list(by).map((server) => server.name))])
    const hint = suggestion === undefined ? '' : `; did you mean ${suggestion}?`
    throw new GatewayError('server-not-found', `No server is named ${name}${hint}`, suggestion ? { suggestion } : {})
  }

  function toDetail(by: Onlooker, { entry, status }: FoundServer): ServerDetail {
    const judged = catalog.ofConnection(status.id)
    const offered = catalog.offered(entry, status.id)
    const { definition, origins, scope } = entry
    const { description, enabled } = definition
    return {
      ...(enabled ? forOnlooker(by, status) : toDisabled(status)),
      scope,
      enabled,
      ...(description !== undefined && { description }),
      ...show(definition, origins, (origin) => sees(by, origin)),
      tools: offered.tools,
      setAside: [...judged.setAside, ...offered.setAside],
    }
  }
}

/** Disabled in one scope: the connection may be one that other scopes share, and its state is not the server's here. */
function toDisabled({ error: _error, progress: _progress, nextAttemptAt: _next, ...status }: ServerLinkStatus) {
  return { ...status, state: 'disabled' as const }
}

/** `user:me` is whoever asks. The token file of the administrator is nobody in particular. */
function named(by: Onlooker, scope: ScopeKey): Scope {
  if (scope !== 'user:me' || by?.kind !== 'user') return toScope(scope)
  if (by.person || by.role !== 'administrator') return { kind: 'user', name: by.name }
  throw new GatewayError('request-invalid', 'user:me is whoever has signed in: name the user, such as user:anna')
}

const everybodys: ReadonlySet<string> = new Set([
  'transport',
  'description',
  'enabled',
  'tools',
  'defaultRisk',
  'trust',
  'timeout',
])

/** A definition without what was written where the onlooker has no say: commands, addresses, headers, variables. */
export function show(
  definition: EffectiveServer['definition'],
  origins: EffectiveServer['origins'],
  sees: (origin: ScopeKey) => boolean,
): Pick<ServerDetail, 'definition' | 'origins'> {
  const isShown = (key: string) => everybodys.has(key.split('.', 1)[0] ?? '') || isSeen(originOf(origins, key))
  const isSeen = (origin: ScopeKey | undefined) => origin !== undefined && sees(origin)
  const fields = Object.entries(definition).flatMap(([key, value]): [string, unknown][] => {
    if (key !== 'headers' && key !== 'env') return isShown(key) ? [[key, value]] : []
    const entries = Object.entries(value).filter(([name]) => isShown(`${key}.${name}`))
    return entries.length > 0 || isShown(key) ? [[key, Object.fromEntries(entries)]] : []
  })
  return {
    definition: Object.fromEntries(fields),
    origins: Object.fromEntries(Object.entries(origins).filter(([key]) => isShown(key))),
  }
}

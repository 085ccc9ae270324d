import { type ConfigStore, type EffectiveServer, originOf, type Place, seesDefinition } from '../config/config.ts'
import type { EffectiveServer as ShownServer } from '../contract/api/config.ts'
import type { ListedServer } from '../contract/api/servers.ts'
import { GatewayError } from '../contract/errors.ts'
import type { Principal } from '../contract/principal.ts'
import { globalScope, type Scope, type ScopeKey, toScope, toScopeKey } from '../contract/scope.ts'
import type { Server, ServerDetail } from '../contract/server.ts'
import type { SetAside, Tool } from '../contract/tool.ts'
import { nearest } from '../lib/text.ts'
import { hideLiterals } from '../masking/masking.ts'
import type { Page } from '../storage/page.ts'
import type { ServerEntries } from './entries.ts'
import type { ServerLinkStatus, Servers } from './servers.ts'
import { type ToolPageQuery, toIncluded, toServersWithTools } from './tool-lists.ts'

type ServerViewsParts = {
  readonly config: ConfigStore
  readonly entries: Pick<ServerEntries, 'timesOf'>
  readonly servers: Pick<Servers, 'list' | 'find'>
  readonly catalog: OfferedTools
}

/** The part of the catalog that the views of servers need. */
export type OfferedTools = {
  /** The usable tools of a connection and the tools that were set aside. */
  ofConnection(id: string): { readonly tools: readonly unknown[]; readonly setAside: readonly SetAside[] }
  /** The tools of a configured server after the filters of its scope. */
  offered(server: Offering, connection: string): { tools: Tool[]; setAside: SetAside[] }
}

type Offering = Pick<EffectiveServer, 'name' | 'scope' | 'connection' | 'definition' | 'lineage'>

/** The effective server in a scope, and the status of its connection. */
export type FoundServer = { readonly entry: EffectiveServer; readonly status: ServerLinkStatus }

/** The principal that reads. Undefined stands for a program that embeds the gateway: it sees everything. */
type Viewer = Principal | undefined

export type ServerViews = {
  list(by?: Viewer, scope?: ScopeKey): Server[]
  listWithTools(by: Viewer, query: ToolPageQuery, scope?: ScopeKey): Page<ListedServer>
  /** The effective servers that `by` may see, with state and tools as far as they are in `include`. */
  toEffective(by: Principal, servers: Iterable<EffectiveServer>, include: ReadonlySet<string>): ShownServer[]
  /** The given scope, otherwise the scope that defines a server of this name. */
  scopeOf(by: Viewer, name: string, scope: ScopeKey | undefined): Scope
  get(by: Viewer, name: string, scope: Scope): FoundServer
  toDetail(by: Viewer, found: FoundServer): ServerDetail
  /** Whether `by` may see the definitions of a scope. */
  sees(by: Viewer, scope: ScopeKey): boolean
  /** Whether `by` may see the names, states and tools of a scope. */
  isVisible(by: Viewer, scope: ScopeKey): boolean
  toPlace(scope: ScopeKey | Scope): Place
}

/** Principals see the servers of the scopes they use. They see definitions only in scopes where they may change them. */
export function createServerViews({ config, servers, catalog, entries }: ServerViewsParts): ServerViews {
  return {
    list,
    listWithTools,
    toEffective,
    scopeOf,
    get,
    toDetail,
    sees,
    isVisible: (by, scope) => visibleTo(by)(scope),
    toPlace,
  }

  function toPlace(scope: ScopeKey | Scope): Place {
    const place = typeof scope === 'string' ? toScope(scope) : scope
    return { scope: place, owner: config.ownerOf(place) }
  }

  function sees(by: Viewer, scope: ScopeKey): boolean {
    return by === undefined || seesDefinition(by, toPlace(scope), config.current())
  }

  function visibleTo(by: Viewer): (scope: ScopeKey) => boolean {
    if (by === undefined) return () => true
    const used = config.usedBy(by)
    return (scope) => used.has(scope) || sees(by, scope)
  }

  function list(by?: Viewer, scope?: ScopeKey): Server[] {
    const isVisible = visibleTo(by)
    const wanted = scope && toScopeKey(named(by, scope))
    return servers
      .list()
      .filter((status) => wanted === undefined || status.scope === wanted)
      .filter((status) => isVisible(status.scope))
      .map((status) => {
        const judged = catalog.ofConnection(status.id)
        const times = entries.timesOf(status.scope, status.name)
        return {
          ...withoutOutput(by, status),
          ...fileOf(by, status),
          ...times,
          tools: judged.tools.length,
          setAside: judged.setAside.length,
        }
      })
  }

  function listWithTools(by: Viewer, query: ToolPageQuery, scope?: ScopeKey): Page<ListedServer> {
    return toServersWithTools(list(by, scope), query, { catalog, specs: config.connections() })
  }

  function toEffective(by: Principal, wanted: Iterable<EffectiveServer>, include: ReadonlySet<string>): ShownServer[] {
    return [...wanted].map((server) => {
      const status = servers.find(server.connection)
      return {
        name: server.name,
        scope: server.scope,
        ...show(server, (origin) => sees(by, origin)),
        ...toIncluded(server, status && withoutOutput(by, status), { include, catalog }),
      }
    })
  }

  /** The file is a path of the machine, so only users who see the definition see it. */
  function fileOf(by: Viewer, { scope, name }: { scope: ScopeKey; name: string }): { file?: string } {
    const file = sees(by, scope) ? config.fileOf(toScope(scope), name) : undefined
    return file === undefined ? {} : { file }
  }

  /** Removes the program's output for principals who may not read its logs. */
  function withoutOutput(by: Viewer, status: ServerLinkStatus): ServerLinkStatus {
    if (!status.error?.output || sees(by, status.scope)) return status
    const { output: _output, ...error } = status.error
    return { ...status, error }
  }

  function scopeOf(by: Viewer, name: string, scope: ScopeKey | undefined): Scope {
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

  function get(by: Viewer, name: string, scope: Scope): FoundServer {
    const entry = visibleTo(by)(toScopeKey(scope)) ? config.effectiveIn(scope).servers.get(name) : undefined
    const status = entry && servers.find(entry.connection)
    if (entry && status) return { entry, status }
    const suggestion = nearest(name, [...new Set(list(by).map((server) => server.name))])
    const hint = suggestion === undefined ? '' : `; did you mean ${suggestion}?`
    throw new GatewayError('server-not-found', `No server is named ${name}${hint}`, suggestion ? { suggestion } : {})
  }

  function toDetail(by: Viewer, { entry, status }: FoundServer): ServerDetail {
    const judged = catalog.ofConnection(status.id)
    const offered = catalog.offered(entry, status.id)
    const { definition, scope } = entry
    const { title, description, enabled } = definition
    return {
      ...(enabled ? withoutOutput(by, status) : toDisabled(status)),
      scope,
      ...fileOf(by, { scope, name: entry.name }),
      ...entries.timesOf(scope, entry.name),
      enabled,
      ...(title !== undefined && { title }),
      ...(description !== undefined && { description }),
      ...show(entry, (origin) => sees(by, origin)),
      tools: offered.tools,
      setAside: [...judged.setAside, ...offered.setAside],
    }
  }
}

/** The server is disabled in this scope. The state of the connection may come from another scope that shares it. */
function toDisabled({ error: _error, progress: _progress, nextAttemptAt: _next, ...status }: ServerLinkStatus) {
  return { ...status, state: 'disabled' as const }
}

/** Resolves `user:me` to the principal. The administrator's token file is not a user, so it is rejected. */
function named(by: Viewer, scope: ScopeKey): Scope {
  if (scope !== 'user:me' || by?.kind !== 'user') return toScope(scope)
  if (by.person || by.role !== 'administrator') return { kind: 'user', name: by.name }
  throw new GatewayError(
    'request-invalid',
    'user:me needs a signed-in user; with the admin token, name the user, for example user:anna',
  )
}

const publicFields: ReadonlySet<string> = new Set([
  'transport',
  'title',
  'description',
  'enabled',
  'tools',
  'defaultRisk',
  'trust',
  'timeout',
])

/**
 * A definition without the commands, addresses, headers and variables of scopes that `sees` rejects. Nobody sees the
 * secrets that are written in it.
 */
export function show(
  { name, definition, origins }: Pick<EffectiveServer, 'name' | 'definition' | 'origins'>,
  sees: (origin: ScopeKey) => boolean,
): Pick<ServerDetail, 'definition' | 'origins'> {
  const isShown = (key: string) => publicFields.has(key.split('.', 1)[0] ?? '') || isSeen(originOf(origins, key))
  const isSeen = (origin: ScopeKey | undefined) => origin !== undefined && sees(origin)
  const fields = Object.entries(hideLiterals(name, definition)).flatMap(([key, value]): [string, unknown][] => {
    if (key !== 'headers' && key !== 'env') return isShown(key) ? [[key, value]] : []
    const entries = Object.entries(value).filter(([name]) => isShown(`${key}.${name}`))
    return entries.length > 0 || isShown(key) ? [[key, Object.fromEntries(entries)]] : []
  })
  return {
    definition: Object.fromEntries(fields),
    origins: Object.fromEntries(Object.entries(origins).filter(([key]) => isShown(key))),
  }
}

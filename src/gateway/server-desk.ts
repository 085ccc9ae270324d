import type { Catalog, ViewSelector } from '../catalog/catalog.ts'
import { ownServer, toTool } from '../catalog/catalog.ts'
import type { ConfigEdit, ConfigStore, EffectiveServer } from '../config/config.ts'
import { GatewayError, toGatewayError } from '../contract/errors.ts'
import { type Principal, toPrincipalKey } from '../contract/principal.ts'
import { type ScopeKey, toScope } from '../contract/scope.ts'
import type { Server, ServerDefinition, ServerDetail, Validation } from '../contract/server.ts'
import type { Tool } from '../contract/tool.ts'
import type { Clock } from '../lib/clock.ts'
import { nearest } from '../lib/text.ts'
import { type ServerLinkStatus, type Servers, toFailure } from '../servers/servers.ts'
import type { Storage } from '../storage/storage.ts'
import type { Gateway, ServerChange } from './types.ts'

export type ServerDeskParts = {
  readonly config: ConfigStore
  readonly servers: Servers
  readonly catalog: Catalog
  readonly storage: Pick<Storage, 'audit'>
  readonly clock: Clock
}

export type ServerDesk = {
  /** Whether a change of the configuration under way was asked for here, and is recorded here. */
  changing(): boolean
  list(): Server[]
  listTools(principal: Principal, selector: ViewSelector): Tool[]
  readonly surface: Pick<
    Gateway,
    | 'listServers'
    | 'getServer'
    | 'addServer'
    | 'changeServer'
    | 'removeServer'
    | 'enableServer'
    | 'reconnectServer'
    | 'serverLogs'
    | 'validateServer'
  >
}

const settleMs = 150_000

/** What people do with servers: look, add, change, remove, try. Changes go the one road, through the configuration. */
export function createServerDesk(parts: ServerDeskParts): ServerDesk {
  const { config, servers, catalog, storage, clock } = parts
  let changing = 0

  return {
    changing: () => changing > 0,
    list,
    listTools: (principal, selector) =>
      [...catalog.view(principal, selector).tools.values()].filter(({ server }) => server !== ownServer).map(toTool),
    surface: {
      listServers: list,
      getServer: (name, scope) => toDetail(getStatus(name, scope)),
      addServer: (principal, change) => save(principal, change, 'added'),
      changeServer: (principal, change) => {
        getStatus(change.name, change.scope)
        return save(principal, change, 'changed')
      },
      removeServer,
      enableServer,
      reconnectServer,
      serverLogs: (name, scope) => servers.logs(getStatus(name, scope).id),
      validateServer,
    },
  }

  async function change(edit: ConfigEdit): Promise<void> {
    changing++
    try {
      await config.change(edit)
    } finally {
      changing--
    }
  }

  function list(): Server[] {
    return servers.list().map((status) => {
      const judged = catalog.ofConnection(status.id)
      return { ...status, tools: judged.tools.length, setAside: judged.setAside.length }
    })
  }

  function getStatus(name: string, scope: ScopeKey = 'global'): ServerLinkStatus {
    const all = servers.list()
    const found = all.find((status) => status.name === name && status.scope === scope)
    if (found) return found
    const others = all.filter((status) => status.name === name)
    const [only] = others
    if (only && others.length === 1 && scope === 'global') return only
    const suggestion = nearest(name, [...new Set(all.map((status) => status.name))])
    const hint = suggestion === undefined ? '' : `; did you mean ${suggestion}?`
    throw new GatewayError('server-not-found', `No server is named ${name}${hint}`, suggestion ? { suggestion } : {})
  }

  function toDetail(status: ServerLinkStatus): ServerDetail {
    const entry = entryOf(status)
    const judged = catalog.ofConnection(status.id)
    const { tools, setAside } = entry ? previewOf(entry, status.id) : { tools: [], setAside: [] }
    return {
      ...status,
      definition: entry?.definition ?? {},
      origins: entry?.origins ?? {},
      tools,
      setAside: [...judged.setAside, ...setAside],
    }
  }

  function previewOf(entry: EffectiveServer, id: string): Pick<ServerDetail, 'tools' | 'setAside'> {
    const offered = catalog.offered(entry, id)
    return { tools: offered.tools.map(toTool), setAside: offered.setAside }
  }

  /** The configured entry behind a connection, with the scope that each value came from. */
  function entryOf(status: ServerLinkStatus): EffectiveServer | undefined {
    const seen = config.effective(ownerOf(status.scope)).servers.get(status.name)
    if (seen?.connection === status.id) return seen
    const spec = config.connections().find(({ id }) => id === status.id)
    return spec && { ...spec, connection: spec.id, origins: {} }
  }

  async function save(principal: Principal, wanted: ServerChange, verb: 'added' | 'changed'): Promise<ServerDetail> {
    const { name, definition } = wanted
    const kind = verb === 'added' ? 'add-server' : 'set-server'
    await change({ kind, name, definition, scope: toScope(wanted.scope ?? 'global') })
    await record(principal, name, { change: verb, transport: definition.transport, scope: wanted.scope ?? 'global' })
    return settledDetail(name, wanted.scope)
  }

  async function removeServer(principal: Principal, name: string, scope?: ScopeKey): Promise<void> {
    getStatus(name, scope)
    await change({ kind: 'remove-server', name, scope: toScope(scope ?? 'global') })
    await record(principal, name, { change: 'removed', scope: scope ?? 'global' })
  }

  async function enableServer(
    principal: Principal,
    name: string,
    enabled: boolean,
    scope?: ScopeKey,
  ): Promise<ServerDetail> {
    getStatus(name, scope)
    await change({ kind: 'enable-server', name, enabled, scope: toScope(scope ?? 'global') })
    await record(principal, name, { change: enabled ? 'enabled' : 'disabled', scope: scope ?? 'global' })
    return settledDetail(name, scope)
  }

  async function reconnectServer(principal: Principal, name: string, scope?: ScopeKey): Promise<ServerDetail> {
    servers.reconnect(getStatus(name, scope).id)
    await record(principal, name, { change: 'reconnected', scope: scope ?? 'global' })
    return settledDetail(name, scope)
  }

  async function settledDetail(name: string, scope: ScopeKey | undefined): Promise<ServerDetail> {
    await servers.settled(getStatus(name, scope).id, AbortSignal.timeout(settleMs))
    return toDetail(getStatus(name, scope))
  }

  async function validateServer(definition: ServerDefinition, signal: AbortSignal): Promise<Validation> {
    const started = clock.monotonic()
    const took = () => Math.round(clock.monotonic() - started)
    try {
      const { facts, lists } = await servers.trial(definition, signal)
      const preview = catalog.preview('trial', definition, lists.tools)
      return {
        ok: true,
        ...preview,
        protocol: facts.revision,
        ...(facts.serverInfo && { serverInfo: facts.serverInfo }),
        durationMs: took(),
      }
    } catch (error) {
      const failure = toFailure(toGatewayError(error), clock.now())
      return { ok: false, tools: [], setAside: [], failure, durationMs: took() }
    }
  }

  function record(principal: Principal, server: string, body: Record<string, unknown>): Promise<void> {
    return storage.audit.append({ principal: toPrincipalKey(principal), subject: `server:${server}`, body })
  }
}

/** Somebody in whose eyes a scope counts. */
function ownerOf(scope: string): Principal {
  const agent = /^agent:(.+)$/.exec(scope)?.[1]
  return agent === undefined ? { kind: 'user', name: 'admin-token' } : { kind: 'agent', name: agent }
}

import {
  type ConfigEdit,
  type ConfigStore,
  type EffectiveConfig,
  isComplete,
  mayChangeServer,
  originOf,
  originsOf,
  type ServerAct,
  type SessionOrigin,
  withRisks,
  withTrust,
} from '../config/config.ts'
import type { EffectiveServer as ShownServer } from '../contract/api/config.ts'
import type { ListedServer, ToolRisk } from '../contract/api/servers.ts'
import type { ScopedServer } from '../contract/config.ts'
import { GatewayError } from '../contract/errors.ts'
import { type Principal, toPrincipalKey } from '../contract/principal.ts'
import type { Risk } from '../contract/risk.ts'
import { type Scope, type ScopeKey, toScope, toScopeKey } from '../contract/scope.ts'
import type { SavedServer, Server, ServerDefinition, ServerDetail, Validation } from '../contract/server.ts'
import { hasHints } from '../contract/tool.ts'
import type { Clock } from '../lib/clock.ts'
import { suggestRisk } from '../policy/policy.ts'
import type { MoveLiterals } from '../secrets/secrets.ts'
import type { Page } from '../storage/page.ts'
import type { Storage } from '../storage/storage.ts'
import type { ServerEntries } from './entries.ts'
import { toFailure } from './failure.ts'
import { restoreHidden } from './hidden.ts'
import type { RawList } from './listing.ts'
import { createSavings, type LiteralNotes, type Savings } from './savings.ts'
import type { KeptLogs, Servers } from './servers.ts'
import type { ToolPageQuery } from './tool-lists.ts'
import type { Trial } from './trial.ts'
import { createServerViews, type OfferedTools } from './views.ts'

export type ServerServiceParts = {
  readonly config: ConfigStore
  readonly servers: Servers
  readonly entries: ServerEntries
  /** Resolves when the public names of new tools are stored. */
  named(): Promise<void> | undefined
  readonly catalog: OfferedTools & {
    /** The tools that a tried definition would offer. */
    preview(server: string, definition: ServerDefinition, list: RawList): Pick<Validation, 'tools' | 'setAside'>
  }
  /** Removes the pins of a removed server. */
  forgetPins(server: { readonly name: string; readonly scope: string }, by: string): Promise<void>
  readonly storage: Pick<Storage, 'audit'>
  readonly clock: Clock
  /** Throws if the principal was removed or signed out after the request arrived. */
  demandCurrent(principal: Principal): void
  /** Stores the secrets that are written in definitions, so that the definitions contain only their names. */
  readonly moveLiterals: MoveLiterals
  /** Replaces the servers of a session. The caller has already checked the rights. */
  stateSession(by: Principal, session: string, servers: SessionServers): Promise<LiteralNotes>
}

type SessionServers = Readonly<Record<string, ScopedServer>>

/** A definition in a later scope may contain only some fields. The others are inherited. */
export type ServerChange = {
  name: string
  definition: ServerDefinition | ScopedServer
  scope?: ScopeKey | undefined
  /** Keeps secrets that are written in the definition. Only administrators may. */
  keepLiteral?: boolean | undefined
}
export type RisksChange = {
  name: string
  /** Risks by the original names of the tools. */
  risks: Readonly<Record<string, Risk>>
  scope?: ScopeKey | undefined
}
/** Either a definition, with or without a name, or the name of a saved server. */
export type ServerTrial = {
  definition?: ServerDefinition | undefined
  name?: string | undefined
  scope?: ScopeKey | undefined
}

/** The operations on servers: list, add, change, remove, validate. */
export type ServerService = {
  /** Without `by`, all servers: for a program that embeds the gateway. */
  list(by?: Principal, scope?: ScopeKey): Server[]
  /** A page of servers with their tools. */
  listWithTools(by: Principal | undefined, query: ToolPageQuery, scope?: ScopeKey): Page<ListedServer>
  get(by: Principal | undefined, name: string, scope?: ScopeKey): ServerDetail
  /** Returns after the first attempt to connect, with the state and tools. */
  add(by: Principal, change: ServerChange): Promise<SavedServer>
  /** Throws if `add` would refuse the server because of its name or the rights of the principal. */
  checkAdd(by: Principal, change: Partial<ServerChange> & Pick<ServerChange, 'name'>): void
  change(by: Principal, change: ServerChange): Promise<SavedServer>
  remove(by: Principal, name: string, scope?: ScopeKey): Promise<void>
  enable(by: Principal, name: string, enabled: boolean, scope?: ScopeKey): Promise<ServerDetail>
  reconnect(by: Principal, name: string, scope?: ScopeKey): Promise<ServerDetail>
  /** The risks of a server's tools. For tools without annotations also the risk that their words suggest. */
  risks(by: Principal, name: string, scope?: ScopeKey): ToolRisk[]
  /** Sets the risks of some tools. The rest of the definition stays unchanged. */
  setRisks(by: Principal, wanted: RisksChange): Promise<ServerDetail>
  logs(by: Principal | undefined, name: string, scope?: ScopeKey): KeptLogs
  /** Connects to a definition or a saved server on a separate connection, with the rights of its scope. */
  validate(by: Principal, wanted: ServerTrial, signal: AbortSignal): Promise<Validation>
  /** The effective servers of a scope or of the principal, with the scope that each value comes from. */
  effective(by: Principal, scope?: ScopeKey, include?: ReadonlySet<string>): ShownServer[]
  /** Throws if the principal may not define these servers for a session. */
  judgeSession(by: Principal, session: SessionOrigin & { name: string }, servers: SessionServers): void
  /** Stores the secrets that are written in the servers of a session, which replace the servers `before`. */
  storeSessionLiterals: Savings['storeSession']
}

const settleMs = 150_000

export function createServerService(parts: ServerServiceParts): ServerService {
  const { config, servers, catalog, entries, storage, clock } = parts
  const views = createServerViews({ config, servers, catalog, entries })
  const savings = createSavings(parts.moveLiterals)

  return {
    list: views.list,
    listWithTools: views.listWithTools,
    get: (by, name, scope) => views.toDetail(by, views.get(by, name, views.scopeOf(by, name, scope))),
    add: (by, change) => save(by, change, 'add'),
    checkAdd,
    change: (by, change) => save(by, change, 'change'),
    remove,
    enable,
    reconnect,
    logs,
    risks,
    setRisks,
    validate,
    effective: (by, scope, include = new Set()) =>
      views.toEffective(by, toEffective(by, scope).servers.values(), include),
    judgeSession,
    storeSessionLiterals: savings.storeSession,
  }

  /** Checks the rights for every operation on a server. */
  function demand(principal: Principal, act: Omit<ServerAct, 'owner'>): void {
    parts.demandCurrent(principal)
    const judgement = mayChangeServer(principal, { ...act, ...views.toPlace(act.scope) }, config.current())
    if (!judgement.may) throw new GatewayError('forbidden', judgement.because, { scope: toScopeKey(act.scope) })
  }

  /** The server's current entry in the scope and the definition that the scope inherits. */
  function lookUp(scope: Scope, name: string) {
    const stated = config.statedIn(scope).servers
    const current: ScopedServer | undefined = Object.hasOwn(stated, name) ? stated[name] : undefined
    const inherited = config.inheritedIn(scope).servers.get(name)?.definition
    return { current, inherited, entries: Object.keys(stated).length }
  }

  function judgeSession(by: Principal, session: SessionOrigin & { name: string }, servers: SessionServers): void {
    const { servers: inherited } = config.beneath(session)
    const scope: Scope = { kind: 'session', name: session.name }
    for (const [index, [name, wanted]] of Object.entries(servers).entries()) {
      const before = inherited.get(name)?.definition
      const act = { action: 'change', scope, owner: session.owner, wanted, inherited: before, entries: index } as const
      const judgement = mayChangeServer(by, act, config.current())
      if (!judgement.may) throw new GatewayError('forbidden', `${name}: ${judgement.because}`, { name })
      if (!isComplete(wanted, before)) throw notComplete(name, scope)
    }
  }

  /** Files of other programs and repositories are only read. */
  function demandOwnEntry({ kind, name, scope }: ServerEdit): void {
    const file = config.fileOf(scope, name)
    // An entry of the configuration replaces an entry of `mcp-servers.json`.
    if (file === undefined || (kind === 'add-server' && scope.kind === 'global')) return
    const message = `${name} of ${toScopeKey(scope)} comes from ${file}, which the gateway does not change. An entry of this name in ${config.file} replaces it`
    throw new GatewayError('server-read-only', message, { name, file })
  }

  /** Servers of a session are stored with the session, all others in the configuration. */
  async function change(edit: ServerEdit, by: Principal, demandAllowed: () => void): Promise<LiteralNotes> {
    const judge = () => {
      demandAllowed()
      demandOwnEntry(edit)
    }
    judge()
    if (edit.scope.kind === 'session') {
      const { servers: stated } = config.statedIn(edit.scope)
      return parts.stateSession(by, edit.scope.name, toSessionServers(stated, edit))
    }
    await config.change(edit, { by, judge })
    return {}
  }

  async function save(principal: Principal, wanted: ServerChange, action: 'add' | 'change'): Promise<SavedServer> {
    const { name } = wanted
    const scope = views.scopeOf(principal, name, action === 'add' ? (wanted.scope ?? 'global') : wanted.scope)
    const kind = action === 'add' ? 'add-server' : 'set-server'
    const judge = (definition: ScopedServer) => {
      const found = lookUp(scope, name)
      const { current, inherited } = found
      demand(principal, { action, scope, ...found, wanted: definition })
      if (action === 'change' && current === undefined && inherited === undefined) views.get(principal, name, scope)
      // An incomplete entry of a user or session would be ignored without a message, so it is rejected here.
      const isLenient = scope.kind === 'user' || scope.kind === 'session'
      if (isLenient && !isComplete(definition, inherited)) throw notComplete(name, scope)
    }
    // Before the search for hidden texts, so that its errors tell nothing to principals who may not see the definition.
    judge(wanted.definition)
    const { current } = lookUp(scope, name)
    const notes = await savings.save(principal, { ...wanted, scope, current }, (definition) =>
      change({ kind, name, definition, scope }, principal, () => judge(definition)),
    )
    return { ...(await settledDetail(principal, name, scope)), ...notes }
  }

  function checkAdd(
    principal: Principal,
    { name, definition, scope: wanted }: Parameters<ServerService['checkAdd']>[1],
  ): void {
    const scope = views.scopeOf(principal, name, wanted ?? 'global')
    const found = lookUp(scope, name)
    demand(principal, { action: 'add', scope, ...found, wanted: definition })
    if (found.current !== undefined) throw serverExists(name, scope)
  }

  async function remove(principal: Principal, name: string, wanted?: ScopeKey): Promise<void> {
    const scope = views.scopeOf(principal, name, wanted)
    const connection = config.effectiveIn(scope).servers.get(name)?.connection
    await change({ kind: 'remove-server', name, scope }, principal, () => {
      const found = lookUp(scope, name)
      demand(principal, { action: 'remove', scope, ...found })
      if (found.current === undefined) views.get(principal, name, scope)
    })
    await parts.forgetPins({ name, scope: toScopeKey(scope) }, toPrincipalKey(principal))
    if (connection !== undefined) await servers.forget(connection)
  }

  async function enable(
    principal: Principal,
    name: string,
    enabled: boolean,
    wanted?: ScopeKey,
  ): Promise<ServerDetail> {
    const scope = views.scopeOf(principal, name, wanted)
    await change({ kind: 'enable-server', name, enabled, scope }, principal, () => {
      const found = lookUp(scope, name)
      const action = enabled ? 'enable' : 'disable'
      demand(principal, { action, scope, ...found, wanted: { ...found.current, enabled } })
      views.get(principal, name, scope)
    })
    return settledDetail(principal, name, scope)
  }

  async function reconnect(principal: Principal, name: string, wanted?: ScopeKey): Promise<ServerDetail> {
    const scope = views.scopeOf(principal, name, wanted)
    demand(principal, { action: 'reconnect', scope })
    const { status } = views.get(principal, name, scope)
    // Other scopes may share the connection, so the rights are checked in the connection's scope.
    demand(principal, { action: 'reconnect', scope: toScope(status.scope) })
    const body = { change: 'reconnected', scope: toScopeKey(scope) }
    await storage.audit.append({ principal: toPrincipalKey(principal), subject: `server:${name}`, body })
    servers.reconnect(status.id)
    return settledDetail(principal, name, scope)
  }

  function risks(by: Principal, name: string, wanted?: ScopeKey): ToolRisk[] {
    const { tools } = views.toDetail(by, views.get(by, name, views.scopeOf(by, name, wanted)))
    return tools.map(({ original, name: publicName, description, risk, riskFrom, annotations }) => {
      const isSilent = riskFrom === 'default' && !hasHints(annotations)
      const suggested = isSilent ? suggestRisk({ name: original, description }) : undefined
      const differs = suggested !== undefined && suggested.risk !== risk
      return { tool: original, name: publicName, description, risk, riskFrom, ...(differs && { suggested }) }
    })
  }

  async function setRisks(
    principal: Principal,
    { name, risks: set, scope: wanted }: RisksChange,
  ): Promise<ServerDetail> {
    const scope = views.scopeOf(principal, name, wanted)
    const known = new Set(risks(principal, name, wanted).map(({ tool }) => tool))
    const unknown = Object.keys(set).filter((tool) => !known.has(tool))
    if (unknown.length > 0) {
      throw new GatewayError('request-invalid', `${name} has no tool named ${unknown.join(', ')}`, { unknown })
    }
    await change({ kind: 'set-risks', name, risks: set, scope }, principal, () => {
      const found = lookUp(scope, name)
      demand(principal, { action: 'change', scope, ...found, wanted: withRisks(found.current ?? {}, set) })
      views.get(principal, name, scope)
    })
    return settledDetail(principal, name, scope)
  }

  function logs(by: Principal | undefined, name: string, wanted?: ScopeKey): KeptLogs {
    const { status } = views.get(by, name, views.scopeOf(by, name, wanted))
    if (views.sees(by, status.scope)) return servers.logs(status.id)
    throw new GatewayError(
      'forbidden',
      `You have no access to the logs of ${name}: only users who may change the server can read them`,
    )
  }

  function toEffective(by: Principal, wanted: ScopeKey | undefined): EffectiveConfig {
    if (wanted === undefined) return config.effective(by)
    const scope = views.scopeOf(by, '', wanted)
    const { kind } = scope
    if (!views.isVisible(by, toScopeKey(scope)) && !owns(by, scope)) {
      throw new GatewayError('forbidden', `You have no access to the settings of ${toScopeKey(scope)}`)
    }
    if (kind !== 'agent' && kind !== 'session' && kind !== 'user') return config.effectiveIn(scope)
    return config.effective({ kind, name: scope.name, owner: config.ownerOf(scope) })
  }

  /** Agents without own settings are in no list of scopes, but their owners may see what applies to them. */
  function owns({ kind, name }: Principal, scope: Scope): boolean {
    return kind === 'user' && config.ownerOf(scope) === name
  }

  async function settledDetail(by: Principal, name: string, scope: Scope): Promise<ServerDetail> {
    await servers.settled(views.get(by, name, scope).status.id, AbortSignal.timeout(settleMs))
    await entries.sync()
    await parts.named()
    return views.toDetail(by, views.get(by, name, scope))
  }

  async function validate(principal: Principal, wanted: ServerTrial, signal: AbortSignal): Promise<Validation> {
    const trial = toTrial(principal, wanted)
    const started = clock.monotonic()
    const took = () => Math.round(clock.monotonic() - started)
    const outcome = await servers.trial(trial, signal)
    if (outcome.kind === 'failed') {
      const failure = toFailure(outcome.error, clock.now(), { output: outcome.output })
      return { ok: false, tools: [], setAside: [], failure, durationMs: took() }
    }
    const { facts, lists } = outcome
    return {
      ok: true,
      ...catalog.preview('trial', trial.definition, lists.tools),
      protocol: facts.revision,
      ...(facts.serverInfo && { serverInfo: facts.serverInfo }),
      durationMs: took(),
    }
  }

  /** A trial gets only the rights that the definition would have when saved in its scope. */
  function toTrial(principal: Principal, { name, definition: wanted, scope: inScope }: ServerTrial): Trial {
    const scope = name === undefined ? toOwnScope(principal, inScope) : views.scopeOf(principal, name, inScope)
    if (wanted !== undefined) {
      demand(principal, { action: 'validate', scope, wanted })
      const current = name === undefined ? undefined : lookUp(scope, name).current
      const { definition } = restoreHidden({ name: name ?? '', definition: wanted, current })
      const trusted = config.trusts(toScopeKey(scope))
      const origins = originsOf(definition, toScopeKey(scope))
      const believed = trusted || (scope.kind === 'user' && config.current().members.trustOwn)
      return { name: name ?? '', definition: withTrust(definition, believed), origins, trusted }
    }
    if (name === undefined)
      throw new GatewayError('request-invalid', 'Give the name of a saved server, or a definition')
    demand(principal, { action: 'validate', scope })
    const { entry } = views.get(principal, name, scope)
    demand(principal, { action: 'validate', scope: toScope(entry.scope) })
    const { definition: saved, origins } = entry
    const trusted = config.trusts(originOf(origins, 'url') ?? originOf(origins, 'command') ?? entry.scope)
    return { name, definition: saved, origins, trusted }
  }

  function toOwnScope(principal: Principal, wanted: ScopeKey | undefined): Scope {
    const { kind, name, role } = principal
    const own: ScopeKey = kind === 'user' && role !== 'administrator' ? `user:${name}` : 'global'
    return views.scopeOf(principal, '', wanted ?? own)
  }
}

type ServerEdit = Extract<ConfigEdit, { name: string }> & { readonly scope: Scope }

function toSessionServers(stated: SessionServers, edit: ServerEdit): SessionServers {
  const { name, kind } = edit
  const current = Object.hasOwn(stated, name) ? stated[name] : undefined
  if (kind === 'add-server' && current !== undefined) {
    throw serverExists(name, edit.scope)
  }
  if (kind === 'enable-server') return { ...stated, [name]: { ...current, enabled: edit.enabled } }
  if (kind === 'set-risks') return { ...stated, [name]: withRisks(current ?? {}, edit.risks) }
  if (kind !== 'remove-server') return { ...stated, [name]: edit.definition }
  if (current !== undefined) return Object.fromEntries(Object.entries(stated).filter(([other]) => other !== name))
  throw new GatewayError('server-not-found', `No server is named ${name} in ${toScopeKey(edit.scope)}`, { name })
}

function serverExists(name: string, scope: Scope): GatewayError {
  return new GatewayError('server-exists', `A server named ${name} exists in ${toScopeKey(scope)}`, { name })
}

function notComplete(name: string, scope: Scope): GatewayError {
  const message = `The definition of ${name} in ${toScopeKey(scope)} is incomplete: set transport and url or command`
  return new GatewayError('config-invalid', message, { name })
}

import type { Config, Project, ScopedServer } from '../contract/config.ts'
import { GatewayError } from '../contract/errors.ts'
import type { Principal } from '../contract/principal.ts'
import type { Rule } from '../contract/rule.ts'
import { globalScope, type Scope, type ScopeKey, toScope, toScopeKey } from '../contract/scope.ts'
import type { ServerDefinition } from '../contract/server.ts'
import { own } from '../documents/values.ts'
import { toCanonicalText } from '../lib/canonical.ts'
import type { AcceptedFile } from '../storage/tables/accepted-files.ts'
import { type ServerFiles, withAccepted } from './accepted.ts'
import {
  type EffectiveServer,
  hash,
  type Merge,
  mergeServer,
  type Origins,
  originOf,
  type PinnedEntry,
} from './merge.ts'
import { withOwnTrust } from './own-servers.ts'

export type Statements = { readonly servers: Readonly<Record<string, ScopedServer>>; readonly rules: readonly Rule[] }

/** The owner, agent and project that a session inherits settings from. */
export type SessionOrigin = {
  readonly owner?: string | undefined
  readonly agent?: string | undefined
  readonly project?: string | undefined
}

/** The session's own settings and its origin. */
export type SessionSettings = Statements & SessionOrigin & { readonly name: string }

/** Principals that are not in the file: agents with their owners, sessions, and the names of administrators. */
export type Roster = {
  readonly agents: readonly { readonly name: string; readonly owner?: string | undefined }[]
  readonly sessions: readonly SessionSettings[]
  readonly administrators?: readonly string[]
}

/** Servers of a file that is read in addition to the configuration. An entry of the configuration replaces them. */
export type FileServers = { readonly file: string; readonly servers: Readonly<Record<string, ServerDefinition>> }

/** Servers from other files than the configuration. */
export type AddedServers = { readonly accepted?: readonly AcceptedFile[]; readonly beneath?: FileServers | undefined }

/** The configuration of the file together with the accepted servers of repositories and the roster. */
export type Settings = Config & {
  /** The files of the servers that are not in the configuration. */
  readonly files?: ServerFiles
  readonly sessions?: Readonly<Record<string, SessionSettings>>
  /** Owners by agent name. */
  readonly owners?: Readonly<Record<string, string>>
  readonly administrators?: ReadonlySet<string>
}

export type ScopedRules = {
  readonly scope: ScopeKey
  readonly rules: readonly Rule[]
  /** `allow` rules are ignored: these rules can only be stricter. */
  readonly onlyTightens?: boolean
}

export type EffectiveConfig = {
  /** Two configurations have the same key exactly if their servers and rules are equal. */
  readonly key: string
  /** Servers by name, including disabled ones. */
  readonly servers: ReadonlyMap<string, EffectiveServer>
  readonly rules: readonly ScopedRules[]
}

export type ConnectionSpec = {
  readonly id: string
  readonly name: string
  readonly scope: ScopeKey
  readonly definition: ServerDefinition
  /** The scope of each value. A template may use the variables and secrets that its scope may use. */
  readonly origins: Origins
  /** The address or command was configured in a scope of administrators, so private addresses are allowed. */
  readonly trusted: boolean
  /** Changes exactly when a new connection is needed. */
  readonly fingerprint: string
  /** The entries whose pins apply; the last is the server's own entry. */
  readonly lineage: readonly PinnedEntry[]
}

export function toSettings(config: Config, roster: Roster, { accepted = [], beneath }: AddedServers = {}): Settings {
  const { agents, sessions, administrators = [] } = roster
  const owned = agents.flatMap(({ name, owner }) => (owner === undefined ? [] : [[name, owner]]))
  const whole = withAccepted({ ...config, servers: { ...beneath?.servers, ...config.servers } }, accepted)
  return {
    ...whole.config,
    files: new Map([...whole.files, ['global', listAdded(config, beneath)]]),
    owners: Object.fromEntries(owned),
    administrators: new Set(administrators),
    sessions: Object.fromEntries(sessions.map((session) => [session.name, session])),
  }
}

function listAdded(config: Config, beneath: FileServers | undefined): Map<string, string> {
  const added = Object.keys(beneath?.servers ?? {}).filter((name) => !Object.hasOwn(config.servers, name))
  return new Map(added.map((name) => [name, beneath?.file ?? '']))
}

/**
 * A text for comparing two rosters. It is equal if both have the same administrators, the same owners of agents and the
 * same sessions with settings. Sessions without settings are ignored.
 */
export function toRosterPrint({ owners, administrators = new Set(), sessions = {} }: Settings): string {
  const stating = Object.values(sessions).filter(({ servers, rules }) => rules.length + Object.keys(servers).length > 0)
  return toCanonicalText({ owners, administrators: [...administrators].sort(), stating })
}

/** The chain of scopes of a principal. Later scopes refine earlier ones. */
export function scopesOf(settings: Settings, principal: Principal): readonly Scope[] {
  const { kind, name, owner } = principal
  if (kind === 'user') return [globalScope, { kind, name }]
  const project = projectOf(settings, principal)
  if (kind === 'agent') return [globalScope, ...listNamed({ project, agent: name, user: owner })]
  if (kind === 'run') return [globalScope, ...listNamed({ project })]
  const session = own(settings.sessions ?? {}, name) ?? { owner, project }
  return [...beneathSession(settings, session), { kind, name }]
}

/** The chain that a session inherits. A session without a project belongs to the project of its agent. */
export function beneathSession(settings: Settings, { owner, agent, project }: SessionOrigin): readonly Scope[] {
  const inherited = agent === undefined ? undefined : own(settings.agents, agent)?.project
  return [globalScope, ...listNamed({ project: project ?? inherited, agent, user: owner })]
}

type Named = Readonly<Partial<Record<'project' | 'agent' | 'user', string | undefined>>>

function listNamed({ project, agent, user }: Named): Scope[] {
  const scopes: [Exclude<Scope['kind'], 'global'>, string | undefined][] = [
    ['project', project],
    ['agent', agent],
    ['user', user],
  ]
  return scopes.flatMap(([kind, name]) => (name === undefined ? [] : [{ kind, name }]))
}

/** The project of a principal. The project of an agent is configured in the file. */
export function projectOf(config: Config, { kind, name, project }: Principal): string | undefined {
  return kind === 'agent' ? own(config.agents, name)?.project : project
}

/** The chain of scopes that ends with this scope. */
export function chainOf(settings: Settings, scope: Scope): readonly Scope[] {
  if (scope.kind === 'global') return [globalScope]
  const { kind, name } = scope
  if (kind === 'agent' || kind === 'session') return scopesOf(settings, { kind, name })
  return [globalScope, scope]
}

/** The scopes that apply to a principal; for a user also the scopes of the user's agents and sessions. */
export function usedBy(settings: Settings, principal: Principal): ReadonlySet<ScopeKey> {
  const { kind, name } = principal
  const owned = kind === 'user' ? listScopes(settings).filter((scope) => ownerOf(settings, scope) === name) : []
  const used = [...scopesOf(settings, principal), ...owned.flatMap((scope) => chainOf(settings, scope))]
  return new Set(used.map(toScopeKey))
}

/** Every chain that a principal can have. A chain comes after the shorter chains that it begins with. */
export function listChains(settings: Settings): (readonly Scope[])[] {
  const { owners = {} } = settings
  const whole = [
    ...listScopes(settings).map((scope) => chainOf(settings, scope)),
    ...Object.entries(owners).map(([name, owner]) => scopesOf(settings, { kind: 'agent', name, owner })),
  ].map((scopes) => scopes.filter((scope) => scope.kind === 'global' || isStated(settings, scope)))
  const chains = whole.flatMap((scopes) => scopes.map((_, index) => scopes.slice(0, index + 1)))
  return [...new Map(chains.map((scopes) => [toChainKey(scopes), scopes])).values()]
}

/** Every scope that contains settings, the global scope first. */
export function listScopes(settings: Settings): Scope[] {
  const { projects, agents, users, sessions = {} } = settings
  return [
    globalScope,
    ...Object.keys(projects).map((name): Scope => ({ kind: 'project', name })),
    ...Object.keys(agents).map((name): Scope => ({ kind: 'agent', name })),
    ...Object.keys(users).map((name): Scope => ({ kind: 'user', name })),
    ...Object.keys(sessions).map((name): Scope => ({ kind: 'session', name })),
  ]
}

/** The owner of a session or agent. */
export function ownerOf({ owners = {}, sessions = {} }: Settings, scope: Scope): string | undefined {
  if (scope.kind === 'agent') return own(owners, scope.name)
  return scope.kind === 'session' ? own(sessions, scope.name)?.owner : undefined
}

export function toChainKey(scopes: readonly Scope[]): string {
  return scopes.map(toScopeKey).join(' ')
}

export function isStated(settings: Settings, scope: Scope): boolean {
  const { servers, rules } = statementsOf(settings, scope)
  return rules.length > 0 || Object.keys(servers).length > 0
}

/** The effective configuration of a chain of scopes. Does not throw for chains that were checked at reading. */
export function effective(settings: Settings, scopes: readonly Scope[], ownScope?: ScopeKey): EffectiveConfig {
  const stack = createStack(settings)
  const servers = ownScope === undefined ? stack(scopes) : trustOwn(settings, { stack, scopes, user: ownScope })
  const rules = scopes.map((scope) => toScopedRules(settings, scope)).filter((stated) => stated.rules.length > 0)
  const content = [...servers.values()].map(({ name, connection, definition }) => ({ name, connection, definition }))
  return { key: hash({ content: content.sort(byName), rules }), servers, rules }
}

type OwnChain = {
  readonly stack: (scopes: readonly Scope[]) => Servers
  readonly scopes: readonly Scope[]
  readonly user: ScopeKey
}

function trustOwn(settings: Settings, { stack, scopes, user }: OwnChain): Servers {
  const place = scopes.findIndex((scope) => toScopeKey(scope) === user)
  if (place === -1) return stack(scopes)
  const { servers: stated } = statementsOf(settings, toScope(user))
  return withOwnTrust(stack(scopes), { user, stated, earlier: stack(scopes.slice(0, place)) })
}

function toScopedRules(settings: Settings, scope: Scope): ScopedRules {
  const key = toScopeKey(scope)
  const { rules } = statementsOf(settings, scope)
  return onlyTightens(settings, key) ? { scope: key, rules, onlyTightens: true } : { scope: key, rules }
}

/** Project owners and the creators of sessions write their own rules, which therefore must not loosen others. */
export function onlyTightens(settings: Settings, key: ScopeKey): boolean {
  return toScope(key).kind !== 'user' && !isTrusted(settings, key)
}

export type Servers = ReadonlyMap<string, EffectiveServer>

/** Chains with a common beginning share its result. */
export function createStack(settings: Settings, onFault = refuse): (scopes: readonly Scope[]) => Servers {
  const known = new Map<string, Servers>()
  return function stack(scopes): Servers {
    const last = scopes.at(-1)
    if (last === undefined) return new Map()
    const key = toChainKey(scopes)
    const servers = known.get(key) ?? applyScope(stack(scopes.slice(0, -1)), settings, last, onFault)
    known.set(key, servers)
    return servers
  }
}

function refuse({ name, scope }: MergeFault): void {
  throw new GatewayError('config-invalid', `The definition of ${name} in ${toScopeKey(scope)} is incomplete`, { name })
}

function applyScope(before: Servers, settings: Settings, scope: Scope, onFault: (fault: MergeFault) => void): Servers {
  const servers = new Map(before)
  const trusts = (key: ScopeKey) => isTrusted(settings, key)
  for (const [name, statement] of Object.entries(statementsOf(settings, scope).servers)) {
    const earlier = before.get(name)
    const merged = mergeServer({ earlier, name, statement, scope: toScopeKey(scope), trusts })
    if (merged.ok) servers.set(name, merged.server)
    // Inherited settings differ between a user's agents and may change at any time. An entry of a user or session that
    // became incomplete is ignored, so that it cannot block a change by an administrator.
    else if (scope.kind !== 'user' && scope.kind !== 'session') onFault({ ...merged, name, scope, statement, before })
  }
  return servers
}

/** The reason why an entry does not result in a complete server. */
export type MergeFault = Extract<Merge, { ok: false }> & {
  readonly name: string
  readonly scope: Scope
  readonly statement: ScopedServer
  readonly before: Servers
}

function byName(left: { name: string }, right: { name: string }): number {
  return left.name < right.name ? -1 : 1
}

const nothing: Statements = { servers: {}, rules: [] }

/** The settings that are written in one scope. Automations have none yet. */
export function statementsOf(settings: Settings, scope: Scope): Statements {
  if (scope.kind === 'global') return settings
  if (scope.kind === 'project') return own(settings.projects, scope.name) ?? nothing
  if (scope.kind === 'agent') return own(settings.agents, scope.name) ?? nothing
  if (scope.kind === 'user') return own(settings.users, scope.name) ?? nothing
  if (scope.kind === 'session') return own(settings.sessions ?? {}, scope.name) ?? nothing
  return nothing
}

/**
 * Whether only administrators can change the scope. False for a project with owners, and for a project with servers from
 * a repository, because its authors write them. True for a user or session if it belongs to an administrator, and for a
 * session without an owner.
 */
export function isTrusted({ projects, sessions = {}, administrators }: Settings, key: ScopeKey): boolean {
  const scope = toScope(key)
  if (scope.kind === 'global' || scope.kind === 'agent') return true
  if (scope.kind === 'project') return isOfAdministrators(own(projects, scope.name))
  if (scope.kind === 'user') return administrators?.has(scope.name) ?? false
  const session = scope.kind === 'session' ? own(sessions, scope.name) : undefined
  return session !== undefined && (session.owner === undefined || (administrators?.has(session.owner) ?? false))
}

function isOfAdministrators(project: Project | undefined): boolean {
  return project !== undefined && project.owners.length === 0 && project.repository === undefined
}

/** Whether the address or command was configured in a scope of administrators. */
function isTrustedTarget(settings: Settings, origins: Origins): boolean {
  const origin = originOf(origins, 'url') ?? originOf(origins, 'command')
  return origin !== undefined && isTrusted(settings, origin)
}

/** The distinct connections of all chains. */
export function connections(settings: Settings): ConnectionSpec[] {
  const specs = new Map<string, ConnectionSpec>()
  for (const server of listServers(settings)) {
    const known = specs.get(server.connection)
    if (known === undefined) specs.set(server.connection, toSpec(settings, server))
    else if (server.definition.enabled)
      specs.set(known.id, { ...known, definition: { ...known.definition, enabled: true } })
  }
  return [...specs.values()]
}

/** The servers of all chains. Chains that do not refine a server share one object. */
export function listServers(settings: Settings): EffectiveServer[] {
  const stack = createStack(settings)
  return [...new Set(listChains(settings).flatMap((scopes) => [...stack(scopes).values()]))]
}

/** Shorter chains come first, so the first occurrence of a connection is in the scope that defines it. */
function toSpec(settings: Settings, { connection, ...server }: EffectiveServer): ConnectionSpec {
  return { id: connection, ...server, trusted: isTrustedTarget(settings, server.origins) }
}

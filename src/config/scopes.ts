import type { Config, ScopedServer } from '../contract/config.ts'
import { GatewayError } from '../contract/errors.ts'
import type { Principal } from '../contract/principal.ts'
import type { Rule } from '../contract/rule.ts'
import { globalScope, type Scope, type ScopeKey, toScope, toScopeKey } from '../contract/scope.ts'
import type { ServerDefinition } from '../contract/server.ts'
import { own } from '../documents/values.ts'
import { toCanonicalText } from '../lib/canonical.ts'
import {
  type EffectiveServer,
  hash,
  type Merge,
  mergeServer,
  type Origins,
  originOf,
  type PinnedEntry,
} from './merge.ts'

export type Statements = { readonly servers: Readonly<Record<string, ScopedServer>>; readonly rules: readonly Rule[] }

/** What a session stands on. */
export type SessionOrigin = {
  readonly owner?: string | undefined
  readonly agent?: string | undefined
  readonly project?: string | undefined
}

/** What a session states for itself, and what it stands on. */
export type SessionSettings = Statements & SessionOrigin & { readonly name: string }

/** Who there is that the file does not know: the agents with their owners, the sessions, and which users are administrators. */
export type Roster = {
  readonly agents: readonly { readonly name: string; readonly owner?: string | undefined }[]
  readonly sessions: readonly SessionSettings[]
  readonly administrators?: readonly string[]
}

/** The file, and what only memory knows. */
export type Settings = Config & {
  readonly sessions?: Readonly<Record<string, SessionSettings>>
  /** By the name of the agent. */
  readonly owners?: Readonly<Record<string, string>>
  readonly administrators?: ReadonlySet<string>
}

export type ScopedRules = {
  readonly scope: ScopeKey
  readonly rules: readonly Rule[]
  /** What they allow loosens nothing. */
  readonly onlyTightens?: boolean
}

export type EffectiveConfig = {
  /** Equal exactly when servers and rules are equal, whichever scopes they came from. */
  readonly key: string
  /** By name, switched off or not. */
  readonly servers: ReadonlyMap<string, EffectiveServer>
  readonly rules: readonly ScopedRules[]
}

export type ConnectionSpec = {
  readonly id: string
  readonly name: string
  readonly scope: ScopeKey
  readonly definition: ServerDefinition
  /** Which scope each value came from: a template may use what the scope of its text may. */
  readonly origins: Origins
  /** An administrators' scope wrote the address or the command: the address may be a private one. */
  readonly trusted: boolean
  /** Changes exactly when the link has to be made anew. */
  readonly fingerprint: string
  /** The entries whose pins apply to it, its own as the last. */
  readonly lineage: readonly PinnedEntry[]
}

export function toSettings(config: Config, { agents, sessions, administrators = [] }: Roster): Settings {
  const owned = agents.flatMap(({ name, owner }) => (owner === undefined ? [] : [[name, owner]]))
  return {
    ...config,
    owners: Object.fromEntries(owned),
    administrators: new Set(administrators),
    sessions: Object.fromEntries(sessions.map((session) => [session.name, session])),
  }
}

/** Changes when others than before state something, or count as somebody else. Sessions that state nothing come and go. */
export function toRosterPrint({ owners, administrators = new Set(), sessions = {} }: Settings): string {
  const stating = Object.values(sessions).filter(({ servers, rules }) => rules.length + Object.keys(servers).length > 0)
  return toCanonicalText({ owners, administrators: [...administrators].sort(), stating })
}

/** The chain of scopes of a principal, the later refining the earlier. */
export function scopesOf(settings: Settings, principal: Principal): readonly Scope[] {
  const { kind, name, owner } = principal
  if (kind === 'user') return [globalScope, { kind, name }]
  const project = projectOf(settings, principal)
  if (kind === 'agent') return [globalScope, ...listNamed({ project, agent: name, user: owner })]
  if (kind === 'run') return [globalScope, ...listNamed({ project })]
  const session = own(settings.sessions ?? {}, name) ?? { owner, project }
  return [...beneathSession(settings, session), { kind, name }]
}

/** An agent's sessions belong to the agent's project if they name none. */
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

/** The project that a principal works for: an agent's stands in the file. */
export function projectOf(config: Config, { kind, name, project }: Principal): string | undefined {
  return kind === 'agent' ? own(config.agents, name)?.project : project
}

/** What somebody inherits to whom a scope belongs, and the scope itself. */
export function chainOf(settings: Settings, scope: Scope): readonly Scope[] {
  if (scope.kind === 'global') return [globalScope]
  const { kind, name } = scope
  if (kind === 'agent' || kind === 'session') return scopesOf(settings, { kind, name })
  return [globalScope, scope]
}

/** The scopes that a principal works under; for a user also those of the user's agents and sessions. */
export function usedBy(settings: Settings, principal: Principal): ReadonlySet<ScopeKey> {
  const { kind, name } = principal
  const owned = kind === 'user' ? listScopes(settings).filter((scope) => ownerOf(settings, scope) === name) : []
  const used = [...scopesOf(settings, principal), ...owned.flatMap((scope) => chainOf(settings, scope))]
  return new Set(used.map(toScopeKey))
}

/** Every chain that anybody may have, each after the chains that it begins with. */
export function listChains(settings: Settings): (readonly Scope[])[] {
  const { owners = {} } = settings
  const whole = [
    ...listScopes(settings).map((scope) => chainOf(settings, scope)),
    ...Object.entries(owners).map(([name, owner]) => scopesOf(settings, { kind: 'agent', name, owner })),
  ].map((scopes) => scopes.filter((scope) => scope.kind === 'global' || isStated(settings, scope)))
  const chains = whole.flatMap((scopes) => scopes.map((_, index) => scopes.slice(0, index + 1)))
  return [...new Map(chains.map((scopes) => [toChainKey(scopes), scopes])).values()]
}

/** Every scope that states something, the global one first. */
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

/** Whose session or agent it is. */
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

/** What holds for a chain of scopes. A chain that the reading has checked never throws. */
export function effective(settings: Settings, scopes: readonly Scope[]): EffectiveConfig {
  const servers = createStack(settings)(scopes)
  const rules = scopes.map((scope) => toScopedRules(settings, scope)).filter((stated) => stated.rules.length > 0)
  const content = [...servers.values()].map(({ name, connection, definition }) => ({ name, connection, definition }))
  return { key: hash({ content: content.sort(byName), rules }), servers, rules }
}

function toScopedRules(settings: Settings, scope: Scope): ScopedRules {
  const key = toScopeKey(scope)
  const { rules } = statementsOf(settings, scope)
  return onlyTightens(settings, key) ? { scope: key, rules, onlyTightens: true } : { scope: key, rules }
}

/** Owners write the rules of their projects, and whoever makes a session those of the session; a user's administrators do. */
export function onlyTightens(settings: Settings, key: ScopeKey): boolean {
  return toScope(key).kind !== 'user' && !isTrusted(settings, key)
}

export type Servers = ReadonlyMap<string, EffectiveServer>

/** Many chains share their beginning, which is worked out once. */
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
  throw new GatewayError('config-invalid', `The server ${name} is not complete in ${toScopeKey(scope)}`, { name })
}

function applyScope(before: Servers, settings: Settings, scope: Scope, onFault: (fault: MergeFault) => void): Servers {
  const servers = new Map(before)
  const trusts = (key: ScopeKey) => isTrusted(settings, key)
  for (const [name, statement] of Object.entries(statementsOf(settings, scope).servers)) {
    const earlier = before.get(name)
    const merged = mergeServer({ earlier, name, statement, scope: toScopeKey(scope), trusts })
    if (merged.ok) servers.set(name, merged.server)
    // What earlier scopes say may differ with each of a user's agents and change at any time. An entry that
    // no longer fits counts for nothing: nobody's entry may stand in the way of an administrator's change.
    else if (scope.kind !== 'user' && scope.kind !== 'session') onFault({ ...merged, name, scope, statement, before })
  }
  return servers
}

/** Why a statement makes no complete server. */
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

/** What one scope states by itself. Automations state nothing yet. */
export function statementsOf(settings: Settings, scope: Scope): Statements {
  if (scope.kind === 'global') return settings
  if (scope.kind === 'project') return own(settings.projects, scope.name) ?? nothing
  if (scope.kind === 'agent') return own(settings.agents, scope.name) ?? nothing
  if (scope.kind === 'user') return own(settings.users, scope.name) ?? nothing
  if (scope.kind === 'session') return own(settings.sessions ?? {}, scope.name) ?? nothing
  return nothing
}

/**
 * Whether only administrators write there. A project that has owners is theirs as well, and a user or a session is the
 * administrators' where it belongs to one of them. A session without an owner belongs to no one else.
 */
export function isTrusted({ projects, sessions = {}, administrators }: Settings, key: ScopeKey): boolean {
  const scope = toScope(key)
  if (scope.kind === 'global' || scope.kind === 'agent') return true
  if (scope.kind === 'project') return own(projects, scope.name)?.owners.length === 0
  if (scope.kind === 'user') return administrators?.has(scope.name) ?? false
  const session = scope.kind === 'session' ? own(sessions, scope.name) : undefined
  return session !== undefined && (session.owner === undefined || (administrators?.has(session.owner) ?? false))
}

/** Whether an administrators' scope wrote the address or the command. */
function isTrustedTarget(settings: Settings, origins: Origins): boolean {
  const origin = originOf(origins, 'url') ?? originOf(origins, 'command')
  return origin !== undefined && isTrusted(settings, origin)
}

/** The distinct connections that any chain wants. */
export function connections(settings: Settings): ConnectionSpec[] {
  const stack = createStack(settings)
  const specs = new Map<string, ConnectionSpec>()
  for (const server of listChains(settings).flatMap((scopes) => [...stack(scopes).values()])) {
    const known = specs.get(server.connection)
    if (known === undefined) specs.set(server.connection, toSpec(settings, server))
    else if (server.definition.enabled)
      specs.set(known.id, { ...known, definition: { ...known.definition, enabled: true } })
  }
  return [...specs.values()]
}

/** A connection is met first in the chain of the scope that made it, because shorter chains come first. */
function toSpec(settings: Settings, { connection, ...server }: EffectiveServer): ConnectionSpec {
  return { id: connection, ...server, trusted: isTrustedTarget(settings, server.origins) }
}

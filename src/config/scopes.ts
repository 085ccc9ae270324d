import { createHash } from 'node:crypto'
import type { Config, ScopedServer } from '../contract/config.ts'
import { GatewayError } from '../contract/errors.ts'
import type { Principal } from '../contract/principal.ts'
import type { Rule } from '../contract/rule.ts'
import { globalScope, type Scope, type ScopeKey, toScopeKey } from '../contract/scope.ts'
import { ServerDefinition } from '../contract/server.ts'
import { isPlainObject, own, type PlainObject, toCanonical } from './values.ts'

export type EffectiveServer = {
  readonly name: string
  /** The last scope that states anything of it. */
  readonly scope: ScopeKey
  /** Which connection carries it; scopes that leave the link alone share one. */
  readonly connection: string
  readonly definition: ServerDefinition
  /** Where each field came from, by dotted key. */
  readonly origins: Readonly<Record<string, ScopeKey>>
}

export type EffectiveConfig = {
  /** Equal exactly when servers and rules are equal, whichever scopes they came from. */
  readonly key: string
  /** By name, switched off or not. */
  readonly servers: ReadonlyMap<string, EffectiveServer>
  readonly rules: readonly { readonly scope: ScopeKey; readonly rules: readonly Rule[] }[]
}

export type ConnectionSpec = {
  readonly id: string
  readonly name: string
  readonly scope: ScopeKey
  readonly definition: ServerDefinition
  /** Changes exactly when the link has to be made anew. */
  readonly fingerprint: string
}

/** The chain of scopes of a principal, the later refining the earlier. */
export function scopesOf(config: Config, principal: Principal): readonly Scope[] {
  if (principal.kind !== 'agent') return [globalScope]
  const project = projectOf(config, principal)
  const between: Scope[] = project === undefined ? [] : [{ kind: 'project', name: project }]
  return [globalScope, ...between, { kind: 'agent', name: principal.name }]
}

/** The project that a principal works for: an agent's stands in the file. */
export function projectOf(config: Config, { kind, name, project }: Principal): string | undefined {
  return kind === 'agent' ? own(config.agents, name)?.project : project
}

/** Every chain the file speaks of. */
export function listChains(config: Config): (readonly Scope[])[] {
  return [
    [globalScope],
    ...Object.keys(config.projects).map((name): Scope[] => [globalScope, { kind: 'project', name }]),
    ...Object.keys(config.agents).map((name) => scopesOf(config, { kind: 'agent', name })),
  ]
}

/** What holds for a chain of scopes. A chain that the reading has checked never throws. */
export function effective(config: Config, scopes: readonly Scope[]): EffectiveConfig {
  const servers = createStack(config)(scopes)
  const rules = scopes
    .map((scope) => ({ scope: toScopeKey(scope), rules: statementsOf(config, scope).rules }))
    .filter((stated) => stated.rules.length > 0)
  const content = [...servers.values()].map(({ name, connection, definition }) => ({ name, connection, definition }))
  return { key: hash({ content: content.sort(byName), rules }), servers, rules }
}

export type Servers = ReadonlyMap<string, EffectiveServer>

/** Many chains share their beginning, which is worked out once. */
export function createStack(config: Config, onFault = refuse): (scopes: readonly Scope[]) => Servers {
  const known = new Map<string, Servers>()
  return function stack(scopes): Servers {
    const last = scopes.at(-1)
    if (last === undefined) return new Map()
    const key = scopes.map(toScopeKey).join(' ')
    const servers = known.get(key) ?? applyScope(stack(scopes.slice(0, -1)), config, last, onFault)
    known.set(key, servers)
    return servers
  }
}

function refuse({ name, scope }: MergeFault): void {
  throw new GatewayError('config-invalid', `The server ${name} is not complete in ${toScopeKey(scope)}`, { name })
}

function applyScope(earlier: Servers, config: Config, scope: Scope, onFault: (fault: MergeFault) => void): Servers {
  const servers = new Map(earlier)
  for (const [name, statement] of Object.entries(statementsOf(config, scope).servers)) {
    const merged = mergeServer(earlier.get(name), name, statement, toScopeKey(scope))
    if (merged.ok) servers.set(name, merged.server)
    else onFault({ ...merged, name, scope, statement, earlier })
  }
  return servers
}

/** Why a statement makes no complete server. */
export type MergeFault = Extract<Merge, { ok: false }> & {
  readonly name: string
  readonly scope: Scope
  readonly statement: ScopedServer
  readonly earlier: Servers
}

function byName(left: { name: string }, right: { name: string }): number {
  return left.name < right.name ? -1 : 1
}

type Statements = { readonly servers: Readonly<Record<string, ScopedServer>>; readonly rules: readonly Rule[] }

const nothing: Statements = { servers: {}, rules: [] }

/** What one scope states by itself. Automations, users and sessions state nothing in the file. */
export function statementsOf(config: Config, scope: Scope): Statements {
  if (scope.kind === 'global') return config
  if (scope.kind === 'project') return own(config.projects, scope.name) ?? nothing
  if (scope.kind === 'agent') return own(config.agents, scope.name) ?? nothing
  return nothing
}

type Merge =
  | { readonly ok: true; readonly server: EffectiveServer }
  | { readonly ok: false; readonly candidate: PlainObject; readonly replaces: boolean; readonly issues: Issues }

type Issues = NonNullable<ReturnType<typeof ServerDefinition.safeParse>['error']>['issues']

/** One statement on top of what earlier scopes made of the server. */
function mergeServer(
  earlier: EffectiveServer | undefined,
  name: string,
  statement: ScopedServer,
  scope: ScopeKey,
): Merge {
  // Another address or program is another server: handing it the headers and env of the first would leak them.
  const base = earlier !== undefined && !changesIdentity(earlier.definition, statement) ? earlier : undefined
  const candidate = base === undefined ? statement : mergeFields(base.definition, statement, [])
  const parsed = ServerDefinition.safeParse(candidate)
  if (!parsed.success) {
    return { ok: false, candidate, replaces: earlier !== undefined && base === undefined, issues: parsed.error.issues }
  }
  const definition = parsed.data
  const shared = base !== undefined && fingerprint(base.definition) === fingerprint(definition)
  const ownConnection = scope === 'global' ? name : `${name}@${scope}`
  const origins =
    base === undefined ? originsOf(definition, scope) : mergeOrigins(base.origins, definition, statement, scope)
  return {
    ok: true,
    server: { name, scope, connection: shared ? base.connection : ownConnection, definition, origins },
  }
}

const identity = ['transport', 'url', 'command']

export function changesIdentity(earlier: PlainObject, statement: PlainObject): boolean {
  return identity.some((key) => statement[key] !== undefined && statement[key] !== earlier[key])
}

/** Maps merge key by key, everything else is replaced. Names of headers are the same in any case of letters. */
function mergeFields(earlier: PlainObject, later: PlainObject, path: readonly string[]): PlainObject {
  const overridden = path[0] === 'headers' ? new Set(Object.keys(later).map((name) => name.toLowerCase())) : undefined
  const kept = Object.entries(earlier).filter(([key]) => !overridden?.has(key.toLowerCase()))
  const merged = new Map<string, unknown>(kept)
  for (const [key, value] of Object.entries(later)) {
    if (value === undefined) continue
    const before = merged.get(key)
    const bothMaps = isPlainObject(before) && isPlainObject(value)
    merged.set(key, bothMaps ? mergeFields(before, value, [...path, key]) : value)
  }
  return Object.fromEntries(merged)
}

function originsOf(definition: PlainObject, scope: ScopeKey): Record<string, ScopeKey> {
  return Object.fromEntries(listKeys(definition).map((key) => [key, scope]))
}

function mergeOrigins(
  earlier: Readonly<Record<string, ScopeKey>>,
  definition: PlainObject,
  statement: PlainObject,
  scope: ScopeKey,
): Record<string, ScopeKey> {
  const stated = new Set(listKeys(statement))
  return Object.fromEntries(
    listKeys(definition).map((key) => [key, stated.has(key) ? scope : (own(earlier, key) ?? scope)]),
  )
}

/** Every field by dotted key, maps and what is in them. */
function listKeys(fields: PlainObject, prefix = ''): string[] {
  return Object.entries(fields).flatMap(([name, value]) => {
    if (value === undefined) return []
    const key = `${prefix}${name}`
    return isPlainObject(value) ? [key, ...listKeys(value, `${key}.`)] : [key]
  })
}

/** The distinct connections that any chain of the file wants. */
export function connections(config: Config): ConnectionSpec[] {
  const stack = createStack(config)
  const specs = new Map<string, ConnectionSpec>()
  for (const server of listChains(config).flatMap((scopes) => [...stack(scopes).values()])) {
    const known = specs.get(server.connection)
    if (known === undefined) specs.set(server.connection, toSpec(server))
    else if (server.definition.enabled)
      specs.set(known.id, { ...known, definition: { ...known.definition, enabled: true } })
  }
  return [...specs.values()]
}

/** A connection is met first in the chain of the scope that made it, because chains come shortest first. */
function toSpec({ name, scope, connection, definition }: EffectiveServer): ConnectionSpec {
  return { id: connection, name, scope, definition, fingerprint: fingerprint(definition) }
}

const linkFields = ['transport', 'command', 'args', 'env', 'cwd', 'secretsInArguments', 'url', 'headers', 'timeout']

/** Over what the link depends on, and nothing else: a new description must not cut running calls. */
function fingerprint(definition: PlainObject): string {
  return hash(Object.fromEntries(linkFields.map((key) => [key, definition[key]])))
}

function hash(value: unknown): string {
  return createHash('sha256').update(toCanonical(value)).digest('hex').slice(0, 32)
}

import { type ConfigStore, isComplete, mayChangeServer } from '../config/config.ts'
import type { ScopedServer } from '../contract/config.ts'
import type { ImportedServer, ImportOutcome } from '../contract/import.ts'
import type { Principal } from '../contract/principal.ts'
import { type Scope, type ScopeKey, toScopeKey } from '../contract/scope.ts'
import { ServerDefinition } from '../contract/server.ts'
import type { Need, Note, PlatformServer } from '../formats/formats.ts'
import { findLiterals, type Literal, replaceLiterals } from '../masking/masking.ts'
import { changesNothing, isSameServer, replaceEntry } from './compare.ts'
import { prepare } from './definition.ts'
import { assignNames, toName, toTitle } from './names.ts'

export type PlanParts = {
  readonly config: Pick<
    ConfigStore,
    'current' | 'fileOf' | 'statedIn' | 'inheritedIn' | 'effectiveIn' | 'scopes' | 'ownerOf' | 'trusts'
  >
  /** Whether the author may see the definitions of a scope. Others must have no influence on what the author sees. */
  sees(scope: ScopeKey): boolean
  /** Whether a definition leads to this gateway. */
  isOwn(definition: ScopedServer): boolean
}

export type PlannedServer = {
  readonly name: string
  readonly title: string
  readonly scope: Scope
  readonly outcome: ImportOutcome
  readonly notes: readonly string[]
  /** The definition with its literal secrets; undefined if there is none that could be saved. */
  readonly stated?: ScopedServer | undefined
  readonly open: readonly Literal[]
  readonly needs: readonly Need[]
}

type Found = { readonly server: PlatformServer; readonly scope: Scope; readonly name: string }

/** What becomes of each server. Starts, resolves and contacts nothing. */
export function planServers(
  parts: PlanParts,
  by: Principal,
  { servers, scope }: { servers: readonly PlatformServer[]; scope: Scope },
): PlannedServer[] {
  const added = new Map<ScopeKey, number>()
  return assign(servers, scope).map((found) => {
    const key = toScopeKey(found.scope)
    const planned = planServer(parts, by, found, added.get(key) ?? 0)
    if (planned.outcome === 'new') added.set(key, (added.get(key) ?? 0) + 1)
    return planned
  })
}

/** The scope and the name of each server: names are unique within a scope. */
function assign(servers: readonly PlatformServer[], base: Scope): Found[] {
  const agents = [...new Set(servers.flatMap(({ agent }) => agent ?? []))]
  const agentNames = new Map(assignNames(agents, 'agent').map((name, index) => [agents[index], name]))
  const scopeOf = ({ agent }: PlatformServer): Scope => {
    return agent === undefined ? base : { kind: 'agent', name: agentNames.get(agent) ?? toName(agent, 'agent') }
  }
  const placed = servers.map((server) => ({ server, scope: scopeOf(server) }))
  const groups = new Map<ScopeKey, PlatformServer[]>()
  for (const { server, scope } of placed)
    groups.set(toScopeKey(scope), [...(groups.get(toScopeKey(scope)) ?? []), server])
  const names = new Map<PlatformServer, string>()
  for (const group of groups.values()) {
    for (const [index, name] of assignNames(group.map(({ key }) => key)).entries()) {
      const server = group[index]
      if (server) names.set(server, name)
    }
  }
  return placed.map(({ server, scope }) => ({ server, scope, name: names.get(server) ?? toName(server.key) }))
}

function planServer(parts: PlanParts, by: Principal, found: Found, added: number): PlannedServer {
  const { server, scope, name } = found
  const title = toTitle(server.key) ?? name
  const agent = server.agent === undefined || !('name' in scope) || server.agent === scope.name ? [] : [server.agent]
  const renamed = agent.map(
    (original): Note => ({ field: 'agent', message: `${toTitle(original) ?? ''} has the name ${toScopeKey(scope)}` }),
  )
  const shared = { name, title, scope, needs: server.needs, open: [] }
  const prepared = prepare(
    name,
    name === server.key ? toTitle(server.definition.title ?? '') : title,
    server.definition,
  )
  if ('refused' in prepared) {
    const notes = toTexts([...server.notes, ...renamed])
    return { ...shared, outcome: 'skipped', notes: [prepared.refused, ...notes] }
  }
  const { definition, open } = prepared
  const notes = toTexts([...server.notes, ...renamed, ...prepared.notes])
  if (parts.isOwn(definition)) return { ...shared, outcome: 'skipped', notes: ['leads to this gateway', ...notes] }
  const judged = judge(parts, by, { name, scope, stated: definition, added })
  if ('refused' in judged) return { ...shared, outcome: 'skipped', notes: [judged.refused, ...notes] }
  return { ...shared, open, outcome: judged.outcome, stated: judged.stated, notes: [...notes, ...judged.notes] }
}

function toTexts(notes: readonly Note[]): string[] {
  return [...new Set(notes.map(({ field, message }) => `${field}: ${message}`))]
}

type Wanted = {
  readonly name: string
  readonly scope: Scope
  readonly stated: ScopedServer
  readonly added: number
}
type Judged = { readonly outcome: ImportOutcome; readonly stated: ScopedServer; readonly notes: readonly string[] }

function judge(parts: PlanParts, by: Principal, wanted: Wanted): Judged | { refused: string } {
  const { config } = parts
  const { name, scope, added } = wanted
  const { servers } = config.statedIn(scope)
  const current = Object.hasOwn(servers, name) ? servers[name] : undefined
  const inherited = config.inheritedIn(scope).servers.get(name)
  const existing = parts.sees(toScopeKey(scope)) ? toExisting(parts, wanted, current) : undefined
  const stated = existing ? replaceEntry(existing, wanted.stated) : wanted.stated
  const act = { action: current ? ('change' as const) : ('add' as const), scope, owner: config.ownerOf(scope) }
  const entries = Object.keys(servers).length + added
  const facts = { current, wanted: stated, inherited: inherited?.definition, entries }
  const judgement = mayChangeServer(by, { ...act, ...facts }, config.current())
  if (existing && changesNothing(name, wanted.stated, existing)) return { outcome: 'same', stated, notes: [] }
  if (!judgement.may) return { refused: judgement.because }
  // Files of repositories are only read. An entry of the configuration replaces an entry of `mcp-servers.json`.
  const file = config.fileOf(scope, name)
  if (file !== undefined && scope.kind !== 'global') return { refused: `comes from ${file}, which is not changed` }
  if (!isComplete(stated, inherited?.definition)) return { refused: 'is not a complete server in this scope' }
  if (current) return { outcome: 'changed', stated, notes: explainChange(wanted.stated, existing) }
  const sees = inherited !== undefined && parts.sees(inherited.scope)
  if (inherited && sees && isSameServer(name, wanted.stated, inherited.definition)) {
    return { outcome: 'same', stated, notes: [`exists in ${inherited.scope}`] }
  }
  const overrides = inherited && sees ? [`overrides the server of the same name in ${inherited.scope}`] : []
  return { outcome: 'new', stated, notes: [...overrides, ...listElsewhere(parts, wanted)] }
}

/** The entry of the same name as a whole server. An entry with single fields is completed by what it inherits. */
function toExisting(
  { config, sees }: PlanParts,
  { name, scope }: Wanted,
  current: ScopedServer | undefined,
): ServerDefinition | undefined {
  if (current === undefined) return undefined
  const whole = ServerDefinition.safeParse(current)
  if (whole.success) return whole.data
  const inherited = config.inheritedIn(scope).servers.get(name)
  if (inherited === undefined || !sees(inherited.scope)) return undefined
  const { trust: _trust, ...effective } =
    config.effectiveIn(scope).servers.get(name)?.definition ?? inherited.definition
  return ServerDefinition.safeParse(effective).data
}

function explainChange(stated: ScopedServer, existing: ServerDefinition | undefined): string[] {
  if (existing === undefined) return ['an entry of this name exists; name it in replace to replace it']
  const identity = (['transport', 'command', 'url'] as const).some((key) => stated[key] !== Object(existing)[key])
  return identity
    ? ['another server has this name; replacing it removes its settings: risks, tools, limits']
    : ['the server exists with other settings; name it in replace to replace them']
}

const mostCompared = 2000

/** The same server under another name, and servers of this name in other scopes, as far as the author sees them. */
function listElsewhere({ config, sees }: PlanParts, { name, scope, stated }: Wanted): string[] {
  const notes: string[] = []
  const own = toScopeKey(scope)
  let compared = 0
  for (const other of config.scopes()) {
    const key = toScopeKey(other)
    if (!sees(key)) continue
    for (const [candidate, entry] of Object.entries(config.statedIn(other).servers)) {
      if (key !== own && candidate === name && key !== 'global') notes.push(`${key} has a server of this name too`)
      if (candidate === name || ++compared > mostCompared) continue
      const whole = ServerDefinition.safeParse(entry)
      if (whole.success && isSameServer(name, stated, whole.data)) {
        notes.push(`the same server exists as ${candidate}${key === 'global' ? '' : ` in ${key}`}`)
      }
    }
  }
  return notes
}

/** A planned server as it is shown: with the names of secrets instead of their values. */
export function toShown({ name, title, scope, outcome, notes, stated }: PlannedServer): ImportedServer {
  const hidden = stated && replaceLiterals(stated, findLiterals(name, stated), (literal) => `\${${literal.name}}`)
  const parsed = hidden && ServerDefinition.safeParse(hidden)
  return {
    name,
    title,
    scope: toScopeKey(scope),
    outcome,
    notes: [...notes],
    ...(parsed?.success && { definition: withoutUndefined(parsed.data) }),
  }
}

function withoutUndefined(definition: ServerDefinition): Record<string, unknown> {
  return Object.fromEntries(Object.entries(definition).filter(([, value]) => value !== undefined))
}

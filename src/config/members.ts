import type { Config, Members, ScopedServer } from '../contract/config.ts'
import type { Principal } from '../contract/principal.ts'
import { type Scope, toScopeKey } from '../contract/scope.ts'
import type { ServerDefinition, SharedLimits, ToolChoice } from '../contract/server.ts'
import { own } from '../documents/values.ts'
import { matchesAny } from '../lib/glob.ts'
import { countOf } from '../shared/words.ts'
import { changesIdentity } from './merge.ts'
import { isWithin, lowersDefaultRisk, lowersRiskOf, lowersTrust } from './tighten.ts'

/** A scope with its owner. `owner` is set for sessions and agents, whose owner is not in the file. */
export type Place = { readonly scope: Scope; readonly owner?: string | undefined }

/** An operation on a server of a scope, for which the rights are checked. */
export type ServerAct = Place & {
  readonly action: 'add' | 'change' | 'remove' | 'enable' | 'disable' | 'reconnect' | 'validate'
  /** The current entry of the scope. */
  readonly current?: ScopedServer | undefined
  /** The new entry of the scope. */
  readonly wanted?: ScopedServer | undefined
  /** The definition that the scope inherits under this name. */
  readonly inherited?: ServerDefinition | undefined
  /** The number of entries that the scope already has. */
  readonly entries?: number | undefined
}

export type Judgement = { readonly may: true } | { readonly may: false; readonly because: string }

/** Decides whether a principal may do an operation on a server. Administrators may do everything. */
export function mayChangeServer(principal: Principal, act: ServerAct, config: Config): Judgement {
  if (isAdministrator(principal)) return { may: true }
  return judge(findForbiddenScope(principal, act, config) ?? findFault(act, config.members))
}

/** Commands, addresses, headers and variables are visible to principals who may change them, and to auditors. */
export function seesDefinition(principal: Principal, place: Place, config: Config): boolean {
  if (principal.kind === 'user' && principal.role === 'auditor') return true
  return isAdministrator(principal) || findForbiddenScope(principal, place, config) === undefined
}

function judge(because: string | undefined): Judgement {
  return because === undefined ? { may: true } : { may: false, because }
}

function isAdministrator({ kind, role }: Principal): boolean {
  return kind === 'user' && role === 'administrator'
}

/** The reason why the principal may not change servers of this scope; undefined if the principal may. */
function findForbiddenScope(
  { kind, name, role }: Principal,
  { scope, owner }: Place,
  config: Config,
): string | undefined {
  if (kind !== 'user') return 'Agents and sessions cannot change servers; their owner or an administrator can'
  if (role === 'auditor') return 'Auditors can see servers but cannot change them'
  if (scope.kind === 'user') return scope.name === name ? undefined : reserved(scope, `the user ${scope.name}`)
  if (scope.kind === 'session') return owner === name ? undefined : reserved(scope, 'the owner of the session')
  if (scope.kind !== 'project') return `${reserved(scope)}; your own servers are in user:${name}`
  const owners = own(config.projects, scope.name)?.owners ?? []
  return owners.includes(name) ? undefined : reserved(scope, 'the owners of the project')
}

function reserved(scope: Scope, others?: string): string {
  const who = others === undefined ? 'administrators' : `administrators and ${others}`
  return `Only ${who} can change the servers of ${toScopeKey(scope)}`
}

function findFault(
  { action, current, wanted, inherited, entries = 0 }: ServerAct,
  members: Members,
): string | undefined {
  if (action === 'reconnect') return undefined
  if (action !== 'validate' && current !== undefined && touchesCommand(current)) return commands
  if (wanted === undefined) return undefined
  const isNew = action !== 'validate' && current === undefined
  if (isNew && entries >= members.servers)
    return `This scope already has ${countOf(entries, 'server')}, the most that is allowed`
  return findMemberFault({ wanted, inherited, members })
}

export type MemberEntry = {
  readonly wanted: ScopedServer
  readonly inherited: ServerDefinition | undefined
  readonly members: Members
}

/** The reason why a member or a project owner may not write this entry; undefined if they may. */
export function findMemberFault({ wanted, inherited, members }: MemberEntry): string | undefined {
  if (touchesCommand(wanted)) return commands
  if (inherited === undefined) return findForbiddenAddress(wanted, members) ?? findLowered(wanted, undefined)
  // Rules match names: an entry that takes over a name would get everything that the rules allow for that name.
  if (changesIdentity(inherited, wanted)) return 'Another server already has this name: choose a different name'
  if (inherited.transport === 'stdio' && wanted.timeout !== undefined) return commands
  return findLowered(wanted, inherited) ?? findLoosened(wanted, inherited)
}

const commands = 'Only administrators can add and change servers that run a command'

const commandFields = ['command', 'args', 'env', 'cwd', 'secretsInArguments'] as const

function touchesCommand(entry: ScopedServer): boolean {
  return entry.transport === 'stdio' || commandFields.some((field) => entry[field] !== undefined)
}

/** The host must be literal text: a template could choose another host later, and special spellings could hide it. */
const literalHost = /^https?:\/\/[^\s/\\?#$]+(?:[/?#]|$)/i

function findForbiddenAddress({ transport, url }: ScopedServer, { transports, hosts }: Members): string | undefined {
  if (transport === undefined || url === undefined) return undefined // incomplete: the schema reports it
  if (transport !== 'stdio' && !transports.includes(transport)) {
    const note = transports.length === 0 ? 'none is allowed' : `allowed: ${transports.join(', ')}`
    return `Members and project owners cannot add servers with transport ${transport}; ${note}`
  }
  if (!literalHost.test(url) || !URL.canParse(url)) {
    return 'The address must begin with https:// or http:// and a host without templates'
  }
  const host = new URL(url).hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')
  const allowed = hosts.map((glob) => glob.toLowerCase())
  if (matchesAny(allowed, host)) return undefined
  return `Members and project owners can only add servers on these hosts: ${hosts.join(', ') || 'none'}`
}

const lowered = "Only administrators can lower the risk or raise the trust of a server's tools"

/** Members may raise a risk. They may not lower it, because they would need fewer approvals for their own calls. */
function findLowered(wanted: ScopedServer, inherited: ServerDefinition | undefined): string | undefined {
  if (lowersTrust(wanted, inherited)) return `${lowered}: remove \`trust\``
  if (lowersDefaultRisk(wanted, inherited)) return `${lowered}: remove \`defaultRisk\`, or set it to danger`
  const overridden = Object.entries(wanted.tools?.override ?? {})
  const lowering = overridden.find(([name, { risk }]) => lowersRiskOf(name, risk, inherited))
  return lowering && `${lowered}: remove the risk of ${lowering[0]}, or set it to danger`
}

/** An inherited server can be disabled and restricted, but its tools keep their names, because rules match names. */
function findLoosened(
  { title, enabled, pinning, tools, limits }: ScopedServer,
  inherited: ServerDefinition,
): string | undefined {
  if (differs(title, inherited.title)) return 'Only administrators can change the title of an inherited server'
  if (pinning === 'baseline' && inherited.pinning === 'strict') {
    return 'The inherited server has `pinning: strict`, and a later scope cannot loosen it: remove `pinning`'
  }
  if (enabled === true && !inherited.enabled)
    return 'Only administrators can enable a server that is disabled in the inherited scope'
  if (!tightens(limits, inherited.limits)) return raised
  if (tools === undefined) return undefined
  if (!narrows(tools, inherited.tools)) return 'Only administrators can add tools to those of the inherited server'
  const overridden = Object.entries(tools.override ?? {})
  const before = (tool: string) => own(inherited.tools.override, tool)
  if (!overridden.every(([tool, { limits: ofTool }]) => tightens(ofTool, before(tool)?.limits))) return raised
  const renamed = overridden.some(
    ([tool, { name, description }]) =>
      differs(name, before(tool)?.name) || differs(description, before(tool)?.description),
  )
  return renamed
    ? 'Only administrators can change the names and descriptions of tools of an inherited server'
    : undefined
}

const raised = 'Only administrators can raise the limits of an inherited server'

function tightens(wanted: SharedLimits = {}, before: SharedLimits = {}): boolean {
  const { callsPerMinute = Number.POSITIVE_INFINITY, concurrent = Number.POSITIVE_INFINITY } = before
  return (wanted.callsPerMinute ?? 0) <= callsPerMinute && (wanted.concurrent ?? 0) <= concurrent
}

function differs(wanted: string | undefined, before: string | undefined): boolean {
  return wanted !== undefined && wanted !== before
}

function narrows(wanted: Partial<ToolChoice>, before: ToolChoice): boolean {
  const keeps = wanted.exclude === undefined || before.exclude.every((glob) => wanted.exclude?.includes(glob))
  return keeps && (wanted.include ?? []).every((glob) => isWithin(glob, before))
}

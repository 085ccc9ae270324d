import type { Config, Members, ScopedServer } from '../contract/config.ts'
import type { Principal } from '../contract/principal.ts'
import { type Scope, toScopeKey } from '../contract/scope.ts'
import type { ServerDefinition, SharedLimits, ToolChoice } from '../contract/server.ts'
import { own } from '../documents/values.ts'
import { matchesAny } from '../lib/glob.ts'
import { changesIdentity } from './merge.ts'
import { isWithin, lowersDefaultRisk, lowersRiskOf, lowersTrust } from './tighten.ts'

/** A scope, and whose it is where the file does not tell: the owner of the session or of the agent. */
export type Place = { readonly scope: Scope; readonly owner?: string | undefined }

/** What somebody wants to do with a server of a scope. */
export type ServerAct = Place & {
  readonly action: 'add' | 'change' | 'remove' | 'enable' | 'disable' | 'reconnect' | 'validate'
  /** What the scope states of it now. */
  readonly current?: ScopedServer | undefined
  /** What the scope would state of it. */
  readonly wanted?: ScopedServer | undefined
  /** What earlier scopes make of the name. */
  readonly inherited?: ServerDefinition | undefined
  /** How many entries the scope has already. */
  readonly entries?: number | undefined
}

export type Judgement = { readonly may: true } | { readonly may: false; readonly because: string }

/** Who may do what with which server, on every path. Administrators may everything; all others what stands here. */
export function mayChangeServer(principal: Principal, act: ServerAct, config: Config): Judgement {
  if (isAdministrator(principal)) return { may: true }
  return judge(findStranger(principal, act, config) ?? findFault(act, config.members))
}

/** Commands, addresses, headers and variables are shown to those who may change them, and to auditors. */
export function seesDefinition(principal: Principal, place: Place, config: Config): boolean {
  if (principal.kind === 'user' && principal.role === 'auditor') return true
  return isAdministrator(principal) || findStranger(principal, place, config) === undefined
}

function judge(because: string | undefined): Judgement {
  return because === undefined ? { may: true } : { may: false, because }
}

function isAdministrator({ kind, role }: Principal): boolean {
  return kind === 'user' && role === 'administrator'
}

/** Whose servers they are; undefined where they are the principal's own. */
function findStranger({ kind, name, role }: Principal, { scope, owner }: Place, config: Config): string | undefined {
  if (kind !== 'user') return 'Agents and sessions change no servers: their owner or an administrator does'
  if (role === 'auditor') return 'Auditors look at servers and change none'
  if (scope.kind === 'user') return scope.name === name ? undefined : reserved(scope, `${scope.name} themselves`)
  if (scope.kind === 'session') return owner === name ? undefined : reserved(scope, 'the owner of the session')
  if (scope.kind !== 'project') return `${reserved(scope)}; your own stand in user:${name}`
  const owners = own(config.projects, scope.name)?.owners ?? []
  return owners.includes(name) ? undefined : reserved(scope, 'the owners of the project')
}

function reserved(scope: Scope, others?: string): string {
  const who = others === undefined ? 'administrators only' : `administrators and ${others} only`
  return `Servers of ${toScopeKey(scope)} are changed by ${who}`
}

function findFault(
  { action, current, wanted, inherited, entries = 0 }: ServerAct,
  members: Members,
): string | undefined {
  if (action === 'reconnect') return undefined
  if (action !== 'validate' && current !== undefined && touchesCommand(current)) return commands
  if (wanted === undefined) return undefined
  const isNew = action !== 'validate' && current === undefined
  if (isNew && entries >= members.servers) return `There are ${entries} servers here already, and no more are allowed`
  return findMemberFault({ wanted, inherited, members })
}

export type MemberEntry = {
  readonly wanted: ScopedServer
  readonly inherited: ServerDefinition | undefined
  readonly members: Members
}

/** What keeps an entry from being one that a member, or an owner of a project, may write. */
export function findMemberFault({ wanted, inherited, members }: MemberEntry): string | undefined {
  if (touchesCommand(wanted)) return commands
  if (inherited === undefined) return findForbiddenAddress(wanted, members) ?? findLowered(wanted, undefined)
  // Rules are written for names: whoever takes a name over would take over what the rules allow it.
  if (changesIdentity(inherited, wanted)) return 'Another server has this name already: choose another one'
  if (inherited.transport === 'stdio' && wanted.timeout !== undefined) return commands
  return findLowered(wanted, inherited) ?? findLoosened(wanted, inherited)
}

const commands = 'Servers that are commands are added and changed by administrators only'

const commandFields = ['command', 'args', 'env', 'cwd', 'secretsInArguments'] as const

function touchesCommand(entry: ScopedServer): boolean {
  return entry.transport === 'stdio' || commandFields.some((field) => entry[field] !== undefined)
}

/** The host stands there in plain letters: no template may choose it later, and no spelling may hide it. */
const writtenOut = /^https?:\/\/[^\s/\\?#$]+(?:[/?#]|$)/i

function findForbiddenAddress({ transport, url }: ScopedServer, { transports, hosts }: Members): string | undefined {
  if (transport === undefined || url === undefined) return undefined // not complete: the schema says so
  if (transport !== 'stdio' && !transports.includes(transport)) {
    const others = transports.length === 0 ? 'none' : `only those over ${transports.join(' and ')}`
    return `Members and owners of projects may add no servers over ${transport}, ${others}`
  }
  if (!writtenOut.test(url) || !URL.canParse(url)) {
    return 'The address must begin with https:// or http:// and a host that is written out'
  }
  const host = new URL(url).hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')
  const allowed = hosts.map((glob) => glob.toLowerCase())
  if (matchesAny(allowed, host)) return undefined
  return `Members and owners of projects may add servers of these hosts only: ${hosts.join(', ') || 'none'}`
}

const lowered = "Only administrators say how far a server's tools are trusted"

/** Towards danger everybody may go; what calls ask for is not lowered by those who want to call. */
function findLowered(wanted: ScopedServer, inherited: ServerDefinition | undefined): string | undefined {
  if (lowersTrust(wanted, inherited)) return `${lowered}: leave \`trust\` out`
  if (lowersDefaultRisk(wanted, inherited)) return `${lowered}: leave \`defaultRisk\` out, or say danger`
  const overridden = Object.entries(wanted.tools?.override ?? {})
  const lowering = overridden.find(([name, { risk }]) => lowersRiskOf(name, risk, inherited))
  return lowering && `${lowered}: leave the risk of ${lowering[0]} out, or say danger`
}

/** An inherited server can be switched off and narrowed; rules are written for its tools as they are called there. */
function findLoosened(
  { enabled, pinning, tools, limits }: ScopedServer,
  inherited: ServerDefinition,
): string | undefined {
  if (pinning === 'baseline' && inherited.pinning === 'strict') {
    return 'The inherited server has `pinning: strict`, and a later scope cannot loosen it: leave `pinning` out'
  }
  if (enabled === true && !inherited.enabled) return 'Only administrators switch on what is switched off for everybody'
  if (!tightens(limits, inherited.limits)) return raised
  if (tools === undefined) return undefined
  if (!narrows(tools, inherited.tools)) return 'Only administrators offer more tools of a server than everybody has'
  const overridden = Object.entries(tools.override ?? {})
  const before = (tool: string) => own(inherited.tools.override, tool)
  if (!overridden.every(([tool, { limits: ofTool }]) => tightens(ofTool, before(tool)?.limits))) return raised
  const renamed = overridden.some(
    ([tool, { name, description }]) =>
      differs(name, before(tool)?.name) || differs(description, before(tool)?.description),
  )
  return renamed ? 'Only administrators give the tools of a server that everybody has other names and texts' : undefined
}

const raised = 'Only administrators raise the limits of a server that everybody has'

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

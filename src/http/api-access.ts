import { GatewayError } from '../contract/errors.ts'
import type { Principal } from '../contract/principal.ts'

/** The kinds of caller that differ in what they may do. The token file is the administrator's, but no person. */
export type CallerClass = 'administrator' | 'member' | 'auditor' | 'token-file' | 'agent'

const everyone: readonly CallerClass[] = ['administrator', 'member', 'auditor', 'token-file', 'agent']
/** Configures and looks. */
const operators: readonly CallerClass[] = ['administrator', 'token-file']
/** Members as well, each for what is their own; what that is, is judged where it is done. */
const members: readonly CallerClass[] = ['administrator', 'member', 'token-file']
const users: readonly CallerClass[] = [...members, 'auditor']
/** Looks at everything. */
const onlookers: readonly CallerClass[] = ['administrator', 'auditor', 'token-file']
const persons: readonly CallerClass[] = ['administrator', 'member', 'auditor']
/** Says yes or no to what agents want; no token does. */
const deciders: readonly CallerClass[] = ['administrator', 'member']
/** Signed in: no token makes or changes who may sign in. */
const administrators: readonly CallerClass[] = ['administrator']

/** The one place that says who may do what on REST, by the endpoint's place in the contract. A test holds that none is missing. */
export const access: Readonly<Record<string, readonly CallerClass[]>> = {
  status: everyone,
  'people.me': everyone,
  'people.signOut': persons,
  'people.setupLink': operators,
  'users.list': onlookers,
  'users.add': administrators,
  'users.change': administrators,
  'users.password': persons,
  'users.removal': administrators,
  'users.remove': administrators,
  'agents.list': users,
  'agents.add': members,
  'agents.change': members,
  'agents.removal': members,
  'agents.remove': members,
  'sessions.list': users,
  'sessions.get': users,
  'sessions.create': members,
  'sessions.update': members,
  'sessions.end': members,
  'projects.list': users,
  'projects.get': users,
  'projects.removal': operators,
  'projects.remove': operators,
  'toolsets.list': users,
  'toolsets.get': users,
  'servers.list': users,
  'servers.get': users,
  'servers.add': members,
  'servers.change': members,
  'servers.remove': members,
  'servers.enable': members,
  'servers.disable': members,
  'servers.reconnect': members,
  'servers.validate': members,
  'servers.validateSaved': members,
  'servers.logs': users,
  'servers.risks': users,
  'servers.setRisks': members,
  'tools.list': everyone,
  'tools.get': everyone,
  'tools.call': everyone,
  'calls.list': everyone,
  'calls.get': everyone,
  'approvals.list': everyone,
  'approvals.get': everyone,
  'approvals.answer': deciders,
  'grants.list': everyone,
  'grants.add': deciders,
  'grants.revoke': deciders,
  'events.listen': everyone,
  'results.get': everyone,
  'tokens.list': users,
  'tokens.create': members,
  'tokens.revoke': members,
  'rules.list': everyone,
  'rules.test': everyone,
  'rules.replay': everyone,
  'rules.set': members,
  'secrets.list': users,
  'secrets.set': members,
  'secrets.remove': members,
  'secrets.rotateKey': operators,
  'audit.list': onlookers,
  'audit.get': onlookers,
  'audit.verify': onlookers,
  'audit.export': onlookers,
  'audit.confirmClock': operators,
  'webhooks.list': onlookers,
  'webhooks.deliveries': onlookers,
  'webhooks.retry': operators,
  'webhooks.test': operators,
  'config.show': onlookers,
  'config.effective': users,
  'data.compact': operators,
  'pins.list': users,
  'pins.get': users,
  'pins.accept': members,
  'pins.block': members,
  'pins.acceptMany': members,
}

/** Sent with another method than GET, and changes nothing that others must read again; calls have limits of their own. */
const noChanges: ReadonlySet<string> = new Set([
  'people.signOut',
  'tools.call',
  'rules.test',
  'rules.replay',
  'audit.verify',
])

export function isChange(method: string | undefined, operation: string): boolean {
  return method !== 'GET' && method !== 'HEAD' && !noChanges.has(operation)
}

export function authorise(principal: Principal, operation: string): void {
  const allowed = access[operation] ?? []
  const caller = classOf(principal)
  if (allowed.includes(caller)) return
  if (caller === 'token-file' && allowed.includes('administrator'))
    throw new GatewayError('person-needed', "The administrator's token file is no person, and this is for persons")
  throw new GatewayError('forbidden', `${principal.kind} ${principal.name} may not do this`, { operation })
}

export function classOf({ kind, name, role, person }: Principal): CallerClass {
  if (kind !== 'user') return 'agent'
  if (!person && name === 'admin-token') return 'token-file'
  return role ?? 'member'
}

/** Whether others' calls and how the gateway is built are this caller's business. */
export function seesAll(principal: Principal): boolean {
  return onlookers.includes(classOf(principal))
}

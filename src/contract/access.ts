import type { Principal } from './principal.ts'

/** Classes of callers with different rights. `token-file` is the admin token: an administrator, but not a person. */
export type CallerClass = 'administrator' | 'member' | 'auditor' | 'token-file' | 'agent'

/** Which callers may use an endpoint. `changes: false` marks an endpoint with a method other than GET that changes nothing. */
export type EndpointMeta = { readonly callers: readonly CallerClass[]; readonly changes?: false }

/** Whether a request to an endpoint is a change for `limits.changesPerMinute`. */
export function isChange(method: string | undefined, { changes }: EndpointMeta): boolean {
  return changes !== false && method !== 'GET' && method !== 'HEAD'
}

export const everyone: readonly CallerClass[] = ['administrator', 'member', 'auditor', 'token-file', 'agent']
/** For endpoints that configure the gateway. */
export const operators: readonly CallerClass[] = ['administrator', 'token-file']
/** For endpoints that members may use for their own agents, sessions, servers and secrets. The service checks the ownership. */
export const members: readonly CallerClass[] = ['administrator', 'member', 'token-file']
export const allUsers: readonly CallerClass[] = [...members, 'auditor']
/** For endpoints that read data of all users. */
export const readers: readonly CallerClass[] = ['administrator', 'auditor', 'token-file']
export const persons: readonly CallerClass[] = ['administrator', 'member', 'auditor']
/** For endpoints that answer approvals and give grants. No token may do this. */
export const deciders: readonly CallerClass[] = ['administrator', 'member']
/** For endpoints that add or change users. No token may do this, so the admin token is missing here. */
export const administrators: readonly CallerClass[] = ['administrator']

export function classOf({ kind, name, role, person }: Principal): CallerClass {
  if (kind !== 'user') return 'agent'
  if (!person && name === 'admin-token') return 'token-file'
  return role ?? 'member'
}

/** Whether a principal may see the calls of all principals, and the configuration. */
export function seesAll(principal: Principal): boolean {
  return readers.includes(classOf(principal))
}

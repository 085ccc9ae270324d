import type { Principal } from './principal.ts'

/** The kinds of caller that differ in what they may do. The token file is the administrator's, but not a person. */
export type CallerClass = 'administrator' | 'member' | 'auditor' | 'token-file' | 'agent'

/** Who may use an endpoint. `changes: false` is for one that is sent with another method than GET and changes nothing. */
export type EndpointMeta = { readonly callers: readonly CallerClass[]; readonly changes?: false }

/** Whether using an endpoint counts towards `limits.changesPerMinute`. */
export function isChange(method: string | undefined, { changes }: EndpointMeta): boolean {
  return changes !== false && method !== 'GET' && method !== 'HEAD'
}

export const everyone: readonly CallerClass[] = ['administrator', 'member', 'auditor', 'token-file', 'agent']
/** Configure and look. */
export const operators: readonly CallerClass[] = ['administrator', 'token-file']
/** Members as well, each for what is their own. The service that does it checks what that is. */
export const members: readonly CallerClass[] = ['administrator', 'member', 'token-file']
export const allUsers: readonly CallerClass[] = [...members, 'auditor']
/** Look at everything. */
export const onlookers: readonly CallerClass[] = ['administrator', 'auditor', 'token-file']
export const persons: readonly CallerClass[] = ['administrator', 'member', 'auditor']
/** Approve or deny what agents want to do. No token may. */
export const deciders: readonly CallerClass[] = ['administrator', 'member']
/** Signed in: no token makes or changes who may sign in. */
export const administrators: readonly CallerClass[] = ['administrator']

export function classOf({ kind, name, role, person }: Principal): CallerClass {
  if (kind !== 'user') return 'agent'
  if (!person && name === 'admin-token') return 'token-file'
  return role ?? 'member'
}

/** Whether a principal may see the calls of others and how the gateway is configured. */
export function seesAll(principal: Principal): boolean {
  return onlookers.includes(classOf(principal))
}

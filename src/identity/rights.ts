import { GatewayError } from '../contract/errors.ts'
import { type Principal, toPrincipalKey } from '../contract/principal.ts'

/** The principal of the administrator's token file. It can configure and read, but it is not a signed-in user. */
export const adminToken: Principal = { kind: 'user', name: 'admin-token', role: 'administrator' }

/** True for an administrator and for the administrator's token file. */
export function administers({ kind, role }: Principal): boolean {
  return kind === 'user' && role === 'administrator'
}

/** True for principals who may read everything: administrators and auditors. */
export function oversees(by: Principal): boolean {
  return administers(by) || (by.kind === 'user' && by.role === 'auditor')
}

export function owns({ kind, name, person }: Principal, owner: string | undefined): boolean {
  return kind === 'user' && person === true && owner === name
}

export function manages(by: Principal, owner: string | undefined): boolean {
  return administers(by) || owns(by, owner)
}

/** The owner of a new agent or session: the user who asks, or the user whom an administrator names. */
export function toOwner(by: Principal, wanted: string | undefined): string | undefined {
  const own = by.person ? by.name : undefined
  if (wanted === undefined || wanted === own) return own
  if (administers(by)) return wanted
  throw new GatewayError('forbidden', 'Only administrators can set another user as the owner')
}

export function demandPerson(by: Principal): void {
  if (by.person) return
  throw new GatewayError('person-needed', `This needs a signed-in user; ${toPrincipalKey(by)} is not enough`)
}

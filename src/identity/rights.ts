import { GatewayError } from '../contract/errors.ts'
import { type Principal, toPrincipalKey } from '../contract/principal.ts'

/** The administrator's token file: configures and looks, and is no person. */
export const tokenFile: Principal = { kind: 'user', name: 'admin-token', role: 'administrator' }

/** An administrator, or the token file of one. */
export function administers({ kind, role }: Principal): boolean {
  return kind === 'user' && role === 'administrator'
}

/** Looks at everything. */
export function oversees(by: Principal): boolean {
  return administers(by) || (by.kind === 'user' && by.role === 'auditor')
}

export function owns({ kind, name, person }: Principal, owner: string | undefined): boolean {
  return kind === 'user' && person === true && owner === name
}

export function manages(by: Principal, owner: string | undefined): boolean {
  return administers(by) || owns(by, owner)
}

/** Whose something new is: whoever asks, or whom an administrator names. */
export function toOwner(by: Principal, wanted: string | undefined): string | undefined {
  const own = by.person ? by.name : undefined
  if (wanted === undefined || wanted === own) return own
  if (administers(by)) return wanted
  throw new GatewayError('forbidden', 'Only administrators make something for somebody else')
}

export function demandPerson(by: Principal): void {
  if (by.person) return
  throw new GatewayError('person-needed', `Only a person does this; ${toPrincipalKey(by)} is none`)
}

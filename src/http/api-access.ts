import { GatewayError } from '../contract/errors.ts'
import type { Principal } from '../contract/principal.ts'

/** What a caller without the role of an administrator may do here; of calls, it sees its own. */
const open: ReadonlySet<string> = new Set([
  'status',
  'tools.list',
  'tools.get',
  'tools.call',
  'calls.list',
  'calls.get',
])

/** The one place that says who may do what on REST. `operation` is the endpoint's place in the contract. */
export function authorise(principal: Principal, operation: string): void {
  if (isAdministrator(principal) || open.has(operation)) return
  throw new GatewayError('forbidden', `${principal.kind} ${principal.name} may not do this`, { operation })
}

export function isAdministrator(principal: Principal): boolean {
  return principal.role === 'administrator'
}

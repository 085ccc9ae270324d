import { classOf, type EndpointMeta } from '../contract/access.ts'
import { GatewayError } from '../contract/errors.ts'
import type { Principal } from '../contract/principal.ts'

/** Reads the meta data of an endpoint, which the framework passes as `object`. Without it, no caller is allowed. */
export function toEndpointMeta(meta: object): EndpointMeta {
  return isEndpointMeta(meta) ? meta : { callers: [] }
}

function isEndpointMeta(meta: object): meta is EndpointMeta {
  return 'callers' in meta && Array.isArray(meta.callers)
}

/** Throws unless the contract allows this principal to use the endpoint. */
export function authorise(principal: Principal, { callers }: EndpointMeta): void {
  const caller = classOf(principal)
  if (callers.includes(caller)) return
  if (caller === 'token-file' && callers.includes('administrator'))
    throw new GatewayError('person-needed', 'This needs a signed-in user; the admin token is not enough')
  throw new GatewayError('forbidden', `${principal.kind} ${principal.name} is not allowed to do this`)
}

import { implement } from '@orpc/server'
import { seesAll } from '../../contract/access.ts'
import { api } from '../../contract/api.ts'
import { GatewayError } from '../../contract/errors.ts'
import type { Principal } from '../../contract/principal.ts'
import type { Gateway, LoggedEvent } from '../../gateway/gateway.ts'
import { maySeeCall } from './calls.ts'
import type { ApiContext } from './context.ts'

export function createEventsRoutes() {
  const on = implement(api.events).$context<ApiContext>()
  return on.router({
    listen: on.listen.handler(() => {
      throw new GatewayError('internal', 'Events must be streamed before the request reaches this handler')
    }),
  })
}

/** Events about approvals and calls follow the access rules of their lists. All other events are about the gateway itself. */
export function maySeeEvent(gateway: Gateway, principal: Principal, { event }: LoggedEvent): boolean {
  if ('approval' in event && typeof event.approval === 'object')
    return gateway.approvals.maySee(principal, event.approval)
  if ('call' in event && typeof event.call === 'object') return maySeeCall(gateway, principal, event.call)
  return seesAll(principal)
}

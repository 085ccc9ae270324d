import { implement } from '@orpc/server'
import { api } from '../../contract/api.ts'
import type { Call } from '../../contract/call.ts'
import { GatewayError } from '../../contract/errors.ts'
import { type Principal, toPrincipalKey } from '../../contract/principal.ts'
import type { Gateway } from '../../gateway/gateway.ts'
import { seesAll } from '../api-access.ts'
import type { ApiContext } from './context.ts'

export function createCallsRoutes(gateway: Gateway) {
  const on = implement(api.calls).$context<ApiContext>()
  return on.router({
    list: on.list.handler(async ({ input, context }) => {
      const page = await gateway.calls.list({ ...input, principal: toSeen(context.principal, input.principal) })
      return { items: page.items, next: page.next ?? null }
    }),
    get: on.get.handler(({ input, context }) => getCall(gateway, context.principal, input.params.id)),
  })
}

/** Whose calls a principal gets to see: an administrator or auditor anybody's, everybody else their own. */
function toSeen(principal: Principal, wanted: string | undefined): string | undefined {
  if (seesAll(principal)) return wanted
  const own = toPrincipalKey(principal)
  if (wanted === undefined || wanted === own) return own
  throw new GatewayError('forbidden', 'Only administrators and auditors see the calls of others')
}

async function getCall(gateway: Gateway, principal: Principal, id: string): Promise<Call> {
  const call = await gateway.findCall(id)
  // The call of somebody else is no different from one that never was.
  if (call && (seesAll(principal) || call.principal === toPrincipalKey(principal))) return call
  throw new GatewayError('call-not-found', `No call has the id ${id}`)
}

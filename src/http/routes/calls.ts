import { implement } from '@orpc/server'
import { seesAll } from '../../contract/access.ts'
import { api } from '../../contract/api.ts'
import type { Call } from '../../contract/call.ts'
import { GatewayError } from '../../contract/errors.ts'
import { type Principal, toPrincipalId, toPrincipalKey } from '../../contract/principal.ts'
import type { Gateway } from '../../gateway/gateway.ts'
import type { ApiContext } from './context.ts'

export function createCallsRoutes(gateway: Gateway) {
  const on = implement(api.calls).$context<ApiContext>()
  return on.router({
    list: on.list.handler(async ({ input, context }) => {
      const page = await gateway.calls.list({ ...input, ...toSeen(context.principal, input.principal) })
      return { items: page.items, next: page.next ?? null }
    }),
    get: on.get.handler(({ input, context }) => getCall(gateway, context.principal, input.params.id)),
  })
}

type Seen = { principal?: string; principalId?: string; ownerId?: string }

/** Which calls a principal may see: administrators and auditors all calls, members their own and those of their agents. */
function toSeen(principal: Principal, wanted: string | undefined): Seen {
  if (seesAll(principal)) return { principal: wanted }
  const own = toPrincipalKey(principal)
  const id = toPrincipalId(principal)
  if (isPerson(principal)) return { principal: wanted, ownerId: id }
  if (wanted === undefined || wanted === own) return { principal: own, principalId: id }
  throw new GatewayError('forbidden', 'Only administrators and auditors may see calls of other principals')
}

async function getCall(gateway: Gateway, principal: Principal, id: string): Promise<Call> {
  const { items } = await gateway.calls.list({ limit: 1, id, ...toSeen(principal, undefined) })
  // A call that the caller may not see is reported as missing.
  if (items[0]) return items[0]
  throw new GatewayError('call-not-found', `No call has the id ${id}`)
}

/** Like `toSeen`, for one known call. */
export function maySeeCall(gateway: Gateway, principal: Principal, { principalId = '' }: Call): boolean {
  if (seesAll(principal) || principalId === toPrincipalId(principal)) return true
  return isPerson(principal) && gateway.identity.idsOf(principal).includes(principalId)
}

function isPerson({ kind, person }: Principal): boolean {
  return kind === 'user' && person === true
}

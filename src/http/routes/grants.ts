import { implement } from '@orpc/server'
import { api } from '../../contract/api.ts'
import type { Gateway } from '../../gateway/gateway.ts'
import type { ApiContext } from './context.ts'

export function createGrantsRoutes(gateway: Gateway) {
  const on = implement(api.grants).$context<ApiContext>()
  return on.router({
    list: on.list.handler(async ({ input, context }) => {
      const page = await gateway.grants.list(context.principal, input)
      return { items: [...page.items], next: page.next ?? null }
    }),
    add: on.add.handler(({ input, context }) => gateway.grants.add(context.principal, input)),
    revoke: on.revoke.handler(({ input, context }) => gateway.grants.revoke(context.principal, input.params.id)),
  })
}

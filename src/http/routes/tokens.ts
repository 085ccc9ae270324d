import { implement } from '@orpc/server'
import { api } from '../../contract/api.ts'
import type { Gateway } from '../../gateway/gateway.ts'
import { type ApiContext, whole } from './context.ts'

export function createTokensRoutes(gateway: Gateway) {
  const on = implement(api.tokens).$context<ApiContext>()
  return on.router({
    list: on.list.handler(({ context }) => whole(gateway.tokens.list(context.principal))),
    create: on.create.handler(({ input, context }) => gateway.tokens.create(context.principal, input)),
    revoke: on.revoke.handler(({ input, context }) => gateway.tokens.revoke(context.principal, input.params.id)),
  })
}

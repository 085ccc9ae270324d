import { implement } from '@orpc/server'
import { api } from '../../contract/api.ts'
import type { Gateway } from '../../gateway/gateway.ts'
import { type ApiContext, whole } from './context.ts'

export function createSessionsRoutes(gateway: Gateway) {
  const { sessions } = gateway
  const on = implement(api.sessions).$context<ApiContext>()
  return on.router({
    list: on.list.handler(async ({ input, context }) => whole(await sessions.list(context.principal, input.all))),
    get: on.get.handler(({ input, context }) => sessions.get(context.principal, input.params.name)),
    create: on.create.handler(({ input, context }) => sessions.create(context.principal, input)),
    update: on.update.handler(({ input: { params, body }, context }) =>
      sessions.update(context.principal, params.name, body),
    ),
    end: on.end.handler(({ input, context }) => sessions.end(context.principal, input.params.name)),
  })
}

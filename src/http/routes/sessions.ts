import { implement } from '@orpc/server'
import { api } from '../../contract/api.ts'
import type { Gateway } from '../../gateway/gateway.ts'
import { type ApiContext, whole } from './context.ts'

export function createSessionsRoutes(gateway: Gateway) {
  const { sessions } = gateway.identity
  const on = implement(api.sessions).$context<ApiContext>()
  return on.router({
    list: on.list.handler(async ({ input, context }) => whole(await sessions.list(context.principal, input.all))),
    get: on.get.handler(({ input, context }) => sessions.get(input.params.name, context.principal)),
    create: on.create.handler(({ input, context }) => sessions.create(input, context.principal)),
    update: on.update.handler(({ input: { params, body }, context }) =>
      sessions.update(params.name, body, context.principal),
    ),
    end: on.end.handler(({ input, context }) => sessions.end(input.params.name, context.principal)),
  })
}

import { implement } from '@orpc/server'
import { api } from '../../contract/api.ts'
import type { Gateway } from '../../gateway/gateway.ts'
import { type ApiContext, whole } from './context.ts'

export function createAgentsRoutes(gateway: Gateway) {
  const { agents } = gateway.identity
  const on = implement(api.agents).$context<ApiContext>()
  return on.router({
    list: on.list.handler(({ context }) => whole(agents.list(context.principal))),
    add: on.add.handler(({ input, context }) => agents.add(input, context.principal)),
    change: on.change.handler(({ input: { params, body }, context }) =>
      agents.change(params.name, body, context.principal),
    ),
    remove: on.remove.handler(async ({ input: { params }, context }) => {
      await agents.remove(params.name, context.principal)
      return { removed: params.name }
    }),
  })
}

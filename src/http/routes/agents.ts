import { implement } from '@orpc/server'
import { api } from '../../contract/api.ts'
import type { Gateway } from '../../gateway/gateway.ts'
import { type ApiContext, whole } from './context.ts'

export function createAgentsRoutes(gateway: Gateway) {
  const { agents } = gateway
  const on = implement(api.agents).$context<ApiContext>()
  return on.router({
    list: on.list.handler(({ context }) => whole(agents.list(context.principal))),
    add: on.add.handler(({ input, context }) => agents.add(context.principal, input)),
    change: on.change.handler(({ input: { params, body }, context }) =>
      agents.change(context.principal, params.name, body),
    ),
    removal: on.removal.handler(({ input: { params }, context }) =>
      gateway.removal.plan(context.principal, 'agent', params.name),
    ),
    remove: on.remove.handler(({ input: { params }, context }) =>
      gateway.removal.remove(context.principal, 'agent', params.name),
    ),
  })
}

import { implement } from '@orpc/server'
import { api } from '../../contract/api.ts'
import type { Gateway } from '../../gateway/gateway.ts'
import { type ApiContext, whole } from './context.ts'

export function createUsersRoutes(gateway: Gateway) {
  const { users } = gateway
  const on = implement(api.users).$context<ApiContext>()
  return on.router({
    list: on.list.handler(() => whole(users.list())),
    add: on.add.handler(({ input, context }) => users.add(context.principal, input)),
    change: on.change.handler(({ input: { params, body }, context }) =>
      users.change(context.principal, params.name, body),
    ),
    password: on.password.handler(({ input: { params, body }, context }) =>
      users.setPassword(context.principal, params.name, body),
    ),
    removal: on.removal.handler(({ input: { params }, context }) =>
      gateway.removal.plan(context.principal, 'user', params.name),
    ),
    remove: on.remove.handler(({ input: { params }, context }) =>
      gateway.removal.remove(context.principal, 'user', params.name),
    ),
  })
}

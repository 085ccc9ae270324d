import { implement } from '@orpc/server'
import { api } from '../../contract/api.ts'
import type { Gateway } from '../../gateway/gateway.ts'
import type { ApiContext } from './context.ts'

export function createRegistryRoutes({ gallery: { registry } }: Gateway) {
  const on = implement(api.registry).$context<ApiContext>()
  return on.router({
    search: on.search.handler(({ input, context }) => registry.search(context.principal, input ?? {})),
    plan: on.plan.handler(({ input, context }) => registry.plan(context.principal, input)),
    add: on.add.handler(({ input, context }) => registry.add(context.principal, input)),
  })
}

import { implement } from '@orpc/server'
import { api } from '../../contract/api.ts'
import type { Gateway } from '../../gateway/gateway.ts'
import type { ApiContext } from './context.ts'

export function createDataRoutes(gateway: Gateway) {
  const on = implement(api.data).$context<ApiContext>()
  return on.router({
    compact: on.compact.handler(({ context }) => gateway.data.compact(context.principal)),
  })
}

import { implement } from '@orpc/server'
import { api } from '../../contract/api.ts'
import type { Gateway } from '../../gateway/gateway.ts'
import type { ApiContext } from './context.ts'

export function createApprovalsRoutes(gateway: Gateway) {
  const on = implement(api.approvals).$context<ApiContext>()
  return on.router({
    list: on.list.handler(async ({ input, context }) => {
      const page = await gateway.approvals.list(context.principal, input)
      return { items: [...page.items], next: page.next ?? null }
    }),
    get: on.get.handler(({ input, context }) => gateway.approvals.get(context.principal, input.params.id)),
    answer: on.answer.handler(({ input: { params, body }, context }) =>
      gateway.approvals.answer(context.principal, params.id, body),
    ),
  })
}

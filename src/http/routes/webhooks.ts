import { implement } from '@orpc/server'
import { api } from '../../contract/api.ts'
import type { Gateway } from '../../gateway/gateway.ts'
import { type ApiContext, never, whole } from './context.ts'

export function createWebhooksRoutes(gateway: Gateway) {
  const on = implement(api.webhooks).$context<ApiContext>()
  return on.router({
    list: on.list.handler(async () => whole(await gateway.webhooks.list())),
    deliveries: on.deliveries.handler(async ({ input }) => {
      const page = await gateway.webhooks.deliveries(input)
      return { items: page.items, next: page.next ?? null }
    }),
    retry: on.retry.handler(({ input, context }) => gateway.webhooks.retry(context.principal, input.params.id)),
    test: on.test.handler(({ input, context, signal }) =>
      gateway.webhooks.test(context.principal, input.params.name, signal ?? never),
    ),
  })
}

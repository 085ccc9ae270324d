import { implement } from '@orpc/server'
import { api } from '../../contract/api.ts'
import type { Gateway } from '../../gateway/gateway.ts'
import { type ApiContext, whole } from './context.ts'

export function createGalleryRoutes({ gallery }: Gateway) {
  const on = implement(api.gallery).$context<ApiContext>()
  return on.router({
    list: on.list.handler(async ({ input, context }) => whole(await gallery.list(context.principal, input))),
    get: on.get.handler(({ input, context }) => gallery.get(context.principal, input.params.id)),
    plan: on.plan.handler(({ input: { params, body }, context }) =>
      gallery.plan(context.principal, { ...body, id: params.id }),
    ),
    add: on.add.handler(({ input: { params, body }, context }) =>
      gallery.add(context.principal, { ...body, id: params.id }),
    ),
  })
}

import { implement } from '@orpc/server'
import { api } from '../../contract/api.ts'
import { GatewayError } from '../../contract/errors.ts'
import type { Gateway } from '../../gateway/gateway.ts'
import { type ApiContext, whole } from './context.ts'

export function createPinsRoutes(gateway: Gateway) {
  const on = implement(api.pins).$context<ApiContext>()
  return on.router({
    list: on.list.handler(({ input, context }) => whole(gateway.pins.list(context.principal, input))),
    get: on.get.handler(({ input, context }) => gateway.pins.get(context.principal, input.params.id)),
    accept: on.accept.handler(async ({ input: { params, body }, context }) => {
      const [pin] = await gateway.pins.accept(context.principal, [{ id: params.id, hash: body.hash }])
      if (pin) return pin
      throw new GatewayError('pin-not-found', `No pin has the id ${params.id}`)
    }),
    block: on.block.handler(({ input: { params, body }, context }) =>
      gateway.pins.block(context.principal, { id: params.id, hash: body.hash }),
    ),
    acceptMany: on.acceptMany.handler(async ({ input, context }) => {
      const accepted = await gateway.pins.accept(context.principal, input.accept)
      return { accepted: accepted.length }
    }),
  })
}

import { implement } from '@orpc/server'
import { api } from '../../contract/api.ts'
import type { Gateway } from '../../gateway/gateway.ts'
import { type ApiContext, whole } from './context.ts'

export function createSecretsRoutes(gateway: Gateway) {
  const on = implement(api.secrets).$context<ApiContext>()
  return on.router({
    list: on.list.handler(({ context }) => whole(gateway.secrets.list(context.principal))),
    set: on.set.handler(({ input: { params, query, body }, context }) =>
      gateway.secrets.set(context.principal, { scope: query?.scope ?? 'global', name: params.name, ...body }),
    ),
    remove: on.remove.handler(({ input: { params, query }, context }) =>
      gateway.secrets.remove(context.principal, query?.scope ?? 'global', params.name),
    ),
    rotateKey: on.rotateKey.handler(({ context }) => gateway.secrets.rotateKey(context.principal)),
  })
}

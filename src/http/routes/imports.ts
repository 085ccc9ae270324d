import { implement } from '@orpc/server'
import { api } from '../../contract/api.ts'
import { GatewayError } from '../../contract/errors.ts'
import type { Gateway } from '../../gateway/gateway.ts'
import type { ApiContext } from './context.ts'

export function createImportsRoutes(gateway: Gateway) {
  const on = implement(api.imports).$context<ApiContext>()
  return on.router({
    run: on.run.handler(({ input: { query, body }, context }) => {
      const { hash, replace, environment, ...request } = body
      if (query?.apply !== 'true') return gateway.imports.preview(context.principal, request)
      if (hash === undefined)
        throw new GatewayError('request-invalid', 'hash: is missing. Send the hash of the preview')
      return gateway.imports.apply(context.principal, { ...request, hash, replace, environment })
    }),
  })
}

import { implement } from '@orpc/server'
import { readResultName, toResultPage, waiting } from '../../calls/calls.ts'
import { api } from '../../contract/api.ts'
import type { Gateway } from '../../gateway/gateway.ts'
import { type ApiContext, never } from './context.ts'

export function createResultsRoutes(gateway: Gateway) {
  const on = implement(api.results).$context<ApiContext>()
  return on.router({
    get: on.get.handler(async ({ input: { params, query }, context: { principal, delivery }, signal = never }) => {
      const given = { handle: params.handle, offset: query.offset, ...(query.length && { length: query.length }) }
      const request = {
        principal,
        surface: 'http' as const,
        selector: { kind: 'all' as const },
        name: readResultName,
        arguments: given,
      }
      const outcome = await gateway.calls.run(request, { signal, onDelivered: delivery.onEnd })
      if (outcome.kind === 'refused') throw outcome.error
      if (outcome.kind === 'waiting') throw waiting(outcome.approval)
      return toResultPage(outcome.answer)
    }),
  })
}

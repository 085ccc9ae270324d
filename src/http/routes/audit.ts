import { implement } from '@orpc/server'
import { api } from '../../contract/api.ts'
import type { AuditEntry } from '../../contract/audit.ts'
import type { Call } from '../../contract/call.ts'
import { GatewayError } from '../../contract/errors.ts'
import type { Gateway } from '../../gateway/gateway.ts'
import type { ApiContext } from './context.ts'

export function createAuditRoutes(gateway: Gateway) {
  const on = implement(api.audit).$context<ApiContext>()
  return on.router({
    list: on.list.handler(async ({ input }) => {
      const page = await gateway.audit.list(input)
      return { items: page.items, next: page.next ?? null }
    }),
    get: on.get.handler(({ input }) => getEntries(gateway, input.params.id)),
  })
}

async function getEntries(gateway: Gateway, id: string): Promise<{ entries: AuditEntry[]; call?: Call }> {
  const [, instance, sequence] = /^(.+):(\d{1,15})$/.exec(id) ?? []
  if (instance !== undefined) {
    const entry = await gateway.audit.find(instance, Number(sequence))
    if (entry) return { entries: [entry] }
    throw new GatewayError('not-found', `The record has no entry ${id}`)
  }
  const call = await gateway.findCall(id)
  const { items } = await gateway.audit.list({ call: id, limit: 1000 })
  if (call || items.length > 0) return { entries: items.reverse(), ...(call && { call }) }
  throw new GatewayError('call-not-found', `No call has the id ${id}`)
}

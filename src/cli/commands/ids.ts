import type { Client } from '../client/client.ts'
import { findId } from '../client/short-id.ts'

const limit = 200

/** Full ids for ids that people type; an id may be shortened to a unique beginning. */
export const toCallId = (client: Client, id: string) =>
  findId(id, { noun: 'calls', kind: 'call', list: (cursor) => client.calls.list({ limit, cursor }) })

export const toApprovalId = (client: Client, id: string) =>
  findId(id, { noun: 'approvals', kind: 'approval', list: (cursor) => client.approvals.list({ limit, cursor }) })

export const toGrantId = (client: Client, id: string) =>
  findId(id, { noun: 'grants', kind: 'grant', list: (cursor) => client.grants.list({ limit, cursor }) })

export const toDeliveryId = (client: Client, id: string) =>
  findId(id, { noun: 'deliveries', kind: 'msg', list: (cursor) => client.webhooks.deliveries({ limit, cursor }) })

export const toTokenId = (client: Client, id: string) =>
  findId(id, { noun: 'tokens', list: () => client.tokens.list() })

/** The id of a call, or of an audit entry: `INSTANCE:NUMBER`. */
export async function toEntryId(client: Client, id: string): Promise<string> {
  const [instance = '', sequence] = id.split(':')
  if (sequence === undefined) return toCallId(client, id)
  const full = await findId(instance, { noun: 'instances', kind: 'instance', list: () => listInstances(client) })
  return `${full}:${sequence}`
}

/** The instances that wrote the newest audit entries. */
async function listInstances(client: Client): Promise<{ items: { id: string }[] }> {
  const { items } = await client.audit.list({ limit: 1000 })
  return { items: [...new Set(items.map(({ instance }) => instance))].map((id) => ({ id })) }
}

import { type QueryClient, queryOptions } from '@tanstack/react-query'
import type { Approval } from '../../../src/contract/approval.ts'
import { api } from '../lib/api.ts'

const lookEveryMs = 5000

/** Queries below this key are reloaded after an event. */
export const approvalsKey = ['approvals']

type List = { items: Approval[]; next: string | null }

export const waitingQuery = queryOptions({
  queryKey: [...approvalsKey, 'list', 'waiting'],
  queryFn: (): Promise<List> => api.approvals.list({ state: 'waiting', limit: 200 }),
})

export const recentQuery = queryOptions({
  queryKey: [...approvalsKey, 'list', 'recent'],
  queryFn: (): Promise<List> => api.approvals.list({ limit: 50 }),
})

export function approvalQuery(id: string) {
  return queryOptions({
    queryKey: [...approvalsKey, 'one', id],
    queryFn: () => api.approvals.get({ params: { id } }),
    // Polled, because no event reports that an agent has disconnected.
    refetchInterval: ({ state: { data } }) => (data?.state === 'waiting' ? lookEveryMs : false),
  })
}

/** The call of an approval. */
export function callQuery(id: string, enabled: boolean) {
  return queryOptions({
    queryKey: [...approvalsKey, 'call', id],
    queryFn: () => api.calls.get({ params: { id } }),
    enabled,
  })
}

/** Whether an ended call belongs to one of the loaded approvals. */
export function isAbout(queries: QueryClient, data: unknown): boolean {
  const lists = queries.getQueriesData<List>({ queryKey: [...approvalsKey, 'list'] })
  const call = idOf(data)
  return lists.some(([, list]) => list?.items.some((approval) => approval.call === call))
}

function idOf(data: unknown): unknown {
  if (typeof data !== 'object' || data === null || !('call' in data)) return undefined
  const { call } = data
  return typeof call === 'object' && call !== null && 'id' in call ? call.id : undefined
}

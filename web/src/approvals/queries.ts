import { type QueryClient, queryOptions } from '@tanstack/react-query'
import type { Approval } from '../../../src/contract/approval.ts'
import { api } from '../lib/api.ts'

const lookEveryMs = 5000

/** Everything below it is read again when something happened. */
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
    // No event tells that an agent has hung up.
    refetchInterval: ({ state: { data } }) => (data?.state === 'waiting' ? lookEveryMs : false),
  })
}

/** How a call went that had waited. */
export function callQuery(id: string, enabled: boolean) {
  return queryOptions({
    queryKey: [...approvalsKey, 'call', id],
    queryFn: () => api.calls.get({ params: { id } }),
    enabled,
  })
}

/** Whether a call that has ended is one that somebody was asked about. */
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

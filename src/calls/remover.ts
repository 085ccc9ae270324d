import { idsOf, type Remover } from '../storage/removal.ts'
import type { Storage } from '../storage/storage.ts'

/** Removes stored results and idempotency keys of removed principals. The audit record of their calls stays. */
export function createCallsRemover(storage: Pick<Storage, 'results' | 'keys'>): Remover {
  return {
    topics: [],
    list: async () => [],
    remove: (subjects) => [storage.results.removeAll(idsOf(subjects)), storage.keys.removeAll(idsOf(subjects))],
  }
}

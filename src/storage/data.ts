import type { Compaction } from '../contract/compaction.ts'
import { type Principal, toPrincipalKey } from '../contract/principal.ts'
import type { Storage } from './storage.ts'

/** Operations on the database for administrators. */
export type DataService = {
  /** Returns unused space to the disk. `by` is recorded in the audit. */
  compact(by: Principal): Promise<Compaction>
}

export function createDataService({ storage }: { storage: Pick<Storage, 'compact' | 'audit'> }): DataService {
  return {
    async compact(by) {
      const done = await storage.compact()
      const { database, before, after } = done
      const body = { action: 'compacted', database, before, after }
      if (done.advice === undefined) {
        await storage.audit.append({ principal: toPrincipalKey(by), subject: 'data', body })
      }
      return done
    },
  }
}

import { createHash } from 'node:crypto'
import type { Seal } from '../../src/config/config.ts'
import type {
  BegunChange,
  ChangeOutcome,
  ConfigChangeStore,
  ConfigInForce,
  NewConfigChange,
} from '../../src/storage/tables/config-changes.ts'

export const plainSeal: Seal = {
  make: toDigest,
  fits: (text, made) => toDigest(text) === made,
}

function toDigest(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

export type RecordedChange = { readonly change: NewConfigChange; outcome?: ChangeOutcome }

/** The record of changes without a database, for tests of the configuration alone. */
export type ChangeList = ConfigChangeStore & {
  readonly changes: RecordedChange[]
  /** While true, nothing can be recorded. */
  broken: boolean
}

export function createChangeList(): ChangeList {
  const changes: RecordedChange[] = []
  let inForce: ConfigInForce | undefined
  const demandWhole = () => {
    if (list.broken) throw new Error('The record is broken')
  }
  const list: ChangeList = {
    changes,
    broken: false,
    async begin(change) {
      demandWhole()
      const id = `change_${changes.push({ change })}`
      return {
        id,
        instance: 'instance_1',
        principal: change.principal,
        subject: change.subject,
        inForce: change.inForce,
      }
    },
    toEnd: () => [],
    async end({ id, inForce: after }: BegunChange, outcome) {
      demandWhole()
      const recorded = changes[Number(id.slice('change_'.length)) - 1]
      if (recorded) recorded.outcome = outcome
      if (outcome.state === 'applied') inForce = after
    },
    unfinished: async () => [],
    findInForce: async () => inForce,
    async keepInForce(next) {
      inForce = next
    },
    toKeep: () => [],
    async keepFirst(next) {
      inForce ??= next
    },
  }
  return list
}

import type { Compaction } from '../contract/compaction.ts'
import { type Clock, sleep } from '../lib/clock.ts'
import type { Writer } from './writer.ts'

export type Compactor = {
  /**
   * Gives unused room of the database back to the disk. In small steps if the file is ready for it; else the file is
   * written again as a whole, commits wait until that is done, and afterwards it is ready. Whoever asks while it goes on
   * gets the same answer.
   */
  compact(): Promise<Compaction>
  /** Only in small steps, with room for commits in between; for a file that is not ready for it nothing happens. */
  reclaim(signal: AbortSignal): Promise<void>
}

type CompactorParts = {
  readonly writer: Pick<Writer, 'compact' | 'query'>
  readonly clock: Clock
}

/** After each step, so that commits have at least as much of the thread that writes. */
const pauseMs = 10

export const postgresAdvice =
  'PostgreSQL reuses the room of removed rows itself (autovacuum), so there is nothing to do. To give the room back to the ' +
  'disk, stop all gateways and run `VACUUM (FULL, ANALYZE)` in the database, for example with psql'

export function createCompactor({ writer, clock }: CompactorParts): Compactor {
  const never = new AbortController().signal
  let compacting: Promise<Compaction> | undefined

  return {
    compact() {
      compacting ??= compact().finally(() => {
        compacting = undefined
      })
      return compacting
    },
    async reclaim(signal) {
      const found = await writer.compact('look')
      if (found?.stepwise) await compactInSteps(found.left, signal)
    },
  }

  async function compact(): Promise<Compaction> {
    const found = await writer.compact('look')
    if (!found) return describePostgres()
    if (found.stepwise) await compactInSteps(found.left, never)
    else await writer.compact('whole')
    const after = await writer.compact('trim')
    return { database: 'sqlite', before: found.size, after: after?.size ?? found.size }
  }

  /** Ends also when others free more pages than a step gives back. */
  async function compactInSteps(free: number, signal: AbortSignal): Promise<void> {
    for (let left = free; left > 0 && !signal.aborted; ) {
      const step = await writer.compact('step')
      if (step === undefined || step.left >= left) return
      left = step.left
      if (left > 0) await sleep(clock, pauseMs, signal).catch(() => {})
    }
  }

  async function describePostgres(): Promise<Compaction> {
    const [row] = await writer.query({ sql: 'select pg_database_size(current_database()) as bytes', parameters: [] })
    const bytes = Number(Object(row).bytes)
    return { database: 'postgresql', before: bytes, after: bytes, advice: postgresAdvice }
  }
}

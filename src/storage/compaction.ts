import type { Compaction } from '../contract/compaction.ts'
import { type Clock, sleep } from '../lib/clock.ts'
import type { Writer } from './writer.ts'

export type Compactor = {
  /**
   * Returns unused space of the database file to the disk. Works in small steps if the file supports it. Otherwise the
   * whole file is rewritten once; commits wait, and later runs can use small steps. Concurrent callers share one run.
   */
  compact(): Promise<Compaction>
  /** Works only in small steps, with pauses for commits. Does nothing if the file does not support small steps. */
  reclaim(signal: AbortSignal): Promise<void>
}

type CompactorParts = {
  readonly writer: Pick<Writer, 'compact' | 'query'>
  readonly clock: Clock
}

/** A pause after each step, so that commits get at least half of the storage thread's time. */
const pauseMs = 10

export const postgresAdvice =
  'PostgreSQL reuses the space of removed rows automatically (autovacuum), so no action is needed. To return the space to ' +
  'the disk, stop all gateways and run `VACUUM (FULL, ANALYZE)` in the database, for example with psql'

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

  /** Stops when concurrent writes free more pages than a step returns. */
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

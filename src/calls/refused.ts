import type { CallEnd, ResolvedCall } from '../contract/permit.ts'
import type { Clock } from '../lib/clock.ts'
import type { Storage } from '../storage/storage.ts'
import type { RefusalCount } from '../storage/tables/audit.ts'

/**
 * Records refused calls. If a caller is refused many times for the same reason, only the first calls get their own entries and
 * the rest are counted in one entry. Otherwise an agent in a loop would fill the disk.
 */
export type RefusedCalls = {
  /** False when the call was only counted. */
  record(call: ResolvedCall, end: CallEnd): Promise<boolean>
  /** Writes the counts that are not in the record yet. */
  close(): void
}

type RefusedParts = { readonly storage: Pick<Storage, 'refuse' | 'countRefusals'>; readonly clock: Clock }

/** Refusals of one principal, tool and error code that get their own entries before the rest are counted. */
export const mostRecorded = 50
/** Time between entries with counts. After this time without a refusal, the next refusals get their own entries again. */
export const countEveryMs = 60_000
/** With more tallies than this, all are written early, so that callers with many tools do not fill the memory. */
const mostTallies = 10_000

type Tally = { recorded: number; counted: RefusalCount | undefined }

export function createRefusedCalls({ storage, clock }: RefusedParts): RefusedCalls {
  const tallies = new Map<string, Tally>()
  let cancel = () => {}

  return {
    async record(call, end) {
      const tally = findTally(call, end)
      if (tally.recorded < mostRecorded) {
        tally.recorded++
        await storage.refuse(call, end)
        return true
      }
      const { counted } = tally
      tally.counted = counted
        ? { ...counted, count: counted.count + 1, lastAt: end.endedAt }
        : { ...toFacts(call, end), count: 1, firstAt: end.endedAt, lastAt: end.endedAt }
      return false
    },
    close() {
      cancel()
      writeCounts()
      tallies.clear()
    },
  }

  function findTally(call: ResolvedCall, end: CallEnd): Tally {
    const { principal, subject, method, code } = toFacts(call, end)
    const key = JSON.stringify([principal, subject, method, code])
    const known = tallies.get(key)
    if (known) return known
    if (tallies.size >= mostTallies) {
      writeCounts()
      tallies.clear()
    }
    if (tallies.size === 0) startWindow()
    const tally: Tally = { recorded: 0, counted: undefined }
    tallies.set(key, tally)
    return tally
  }

  function startWindow(): void {
    cancel()
    cancel = clock.after(countEveryMs, endWindow)
  }

  /** A tally with counted refusals stays for the next window, because the caller has not stopped. */
  function endWindow(): void {
    const quiet = [...tallies].filter(([, { counted }]) => counted === undefined)
    for (const [key] of quiet) tallies.delete(key)
    writeCounts()
    if (tallies.size > 0) startWindow()
  }

  function writeCounts(): void {
    for (const tally of tallies.values()) {
      if (tally.counted) storage.countRefusals(tally.counted)
      tally.counted = undefined
    }
  }
}

type Facts = Omit<RefusalCount, 'count' | 'firstAt' | 'lastAt'>

/** Names that a caller can invent (missing tools, resources) are counted together, so that they cannot fill the memory. */
function toFacts(call: ResolvedCall, { error }: CallEnd): Facts {
  const { principal, owner, method, server } = call
  const subject = method === 'tools/call' && server !== '' ? (call.recorded ?? call).tool : server || 'unknown names'
  return { principal, ...(owner !== undefined && { owner }), subject, method, server, code: error?.code ?? 'internal' }
}

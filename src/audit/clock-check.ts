import { z } from 'zod'

/**
 * The clock state that is stored between starts. It cannot be derived from audit entries: a gateway with a wrong clock
 * writes entries with wrong times, and would confirm its own clock.
 */
export const ClockRecord = z.object({
  /** The newest time that the clock showed while it was trusted. */
  confirmed: z.number(),
  /** A clock that is not trusted yet: the last time it showed, and how long gateways have run with it. */
  trial: z.object({ seen: z.number(), ranMs: z.number() }).optional(),
  /**
   * Instances that wrote entries while the clock was behind, with the confirmed time at that moment. Their entries are
   * not older than that time.
   */
  behind: z.record(z.string(), z.number()).default({}),
})
export type ClockRecord = z.infer<typeof ClockRecord>

export type ClockReading = {
  readonly now: number
  /** Milliseconds that this gateway has run since its last reading, from a monotonic clock. */
  readonly ranMs: number
  readonly instance: string
}

export type ClockJudgement = {
  readonly record: ClockRecord
  /** Why the clock is not trusted; undefined if it is trusted. `byMs` is negative for a clock that is behind. */
  readonly doubt?: { readonly byMs: number; readonly remainingMs: number }
  /** The clock was in doubt and is trusted from now on. */
  readonly accepted?: true
}

const dayMs = 86_400_000
/** A clock that differs more than this from the confirmed time is not trusted immediately. */
export const mostDriftMs = dayMs
/** A clock in doubt is trusted after gateways have run with it for this long, so that unattended gateways recover. */
export const trialMs = 3 * dayMs
/** A trial continues after a pause up to this length, such as a weekend. */
const mostPauseMs = 7 * dayMs

/**
 * Decides whether the time of this clock is reliable enough to remove old audit entries. A removal cannot be undone, so a clock that jumped is not
 * trusted.
 */
export function judgeClock(known: ClockRecord, { now, ranMs, instance }: ClockReading): ClockJudgement {
  const byMs = now - known.confirmed
  const { behind } = known
  if (Math.abs(byMs) <= mostDriftMs) {
    return { record: { confirmed: Math.max(known.confirmed, now), behind } }
  }
  const ran = continues(known.trial, now, ranMs) ? (known.trial?.ranMs ?? 0) + ranMs : 0
  if (ran >= trialMs) return { record: { confirmed: now, behind }, accepted: true }
  const doubted = byMs < 0 ? { ...behind, [instance]: known.confirmed } : behind
  const record = { confirmed: known.confirmed, trial: { seen: now, ranMs: ran }, behind: doubted }
  return { record, doubt: { byMs, remainingMs: trialMs - ran } }
}

function continues(trial: ClockRecord['trial'], now: number, ranMs: number): boolean {
  if (!trial) return false
  const passed = now - trial.seen
  return passed >= -mostDriftMs && passed <= ranMs + mostPauseMs
}

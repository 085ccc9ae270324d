import { z } from 'zod'

/**
 * What is remembered about the clock between starts. Entries cannot serve for this: a gateway with a wrong clock writes
 * entries with wrong times, and would confirm itself.
 */
export const ClockRecord = z.object({
  /** The newest time that the clock showed while it was believed. */
  confirmed: z.number(),
  /** A clock that is not believed yet: what it showed last, and how long gateways have run with it. */
  trial: z.object({ seen: z.number(), ranMs: z.number() }).optional(),
  /** Instances that wrote with a clock that was behind, and the confirmed time then: their entries are not older. */
  behind: z.record(z.string(), z.number()).default({}),
})
export type ClockRecord = z.infer<typeof ClockRecord>

export type ClockReading = {
  readonly now: number
  /** Milliseconds that this gateway has run since its last reading, by a clock that never jumps. */
  readonly ranMs: number
  readonly instance: string
}

export type ClockJudgement = {
  readonly record: ClockRecord
  /** Why the clock is not believed; undefined when it is. `byMs` is negative for a clock that is behind. */
  readonly doubt?: { readonly byMs: number; readonly remainingMs: number }
  /** The clock was in doubt, and is believed from now on. */
  readonly accepted?: true
}

const dayMs = 86_400_000
/** Further from the confirmed time than this, a clock is not believed at once. */
export const mostDriftMs = dayMs
/** A clock in doubt is believed after gateways have run with it for this long, so that idle gateways recover. */
export const trialMs = 3 * dayMs
/** A trial goes on after a pause of this length, such as a weekend. */
const mostPauseMs = 7 * dayMs

/** Whether old entries may be removed by this clock. A removal cannot be undone, so a clock that jumped is doubted. */
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

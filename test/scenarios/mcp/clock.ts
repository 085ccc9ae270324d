import type { Clock } from '../../../src/lib/clock.ts'

export type MovableClock = Clock & {
  /** So much later, all at once: what falls due in between happens now. */
  advance(milliseconds: number): void
}

/** Real time, and as much more as a test adds to it. */
export function createMovableClock(): MovableClock {
  const waiting = new Map<{ due: number }, () => void>()
  let ahead = 0
  const monotonic = () => performance.now() + ahead
  return {
    now: () => Math.floor(Date.now() + ahead),
    monotonic,
    after(milliseconds, task) {
      const entry = { due: monotonic() + milliseconds }
      const timer = setTimeout(run, Math.min(milliseconds, 2 ** 31 - 1)).unref()
      function run(): void {
        clearTimeout(timer)
        if (waiting.delete(entry)) task()
      }
      waiting.set(entry, run)
      return () => {
        clearTimeout(timer)
        waiting.delete(entry)
      }
    },
    advance(milliseconds) {
      ahead += milliseconds
      const now = monotonic()
      const due = [...waiting].filter(([entry]) => entry.due <= now).sort(([a], [b]) => a.due - b.due)
      for (const [, run] of due) run()
    },
  }
}

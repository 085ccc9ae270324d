import { onAbort } from './signals.ts'
/** Time is passed in, so that a test can move it. */
export type Clock = {
  /** Milliseconds since 1970, for records and expiry. */
  now(): number
  /** Milliseconds that never jump, for durations and deadlines. */
  monotonic(): number
  /** Runs `task` later; the returned function takes it back. Never keeps the process alive by itself. */
  after(milliseconds: number, task: () => void): () => void
  /** All gateways on a database are given this very clock, so that none has to be measured. For tests that move time. */
  readonly common?: true
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after(milliseconds, task) {
    const timer = setTimeout(task, milliseconds)
    timer.unref()
    return () => clearTimeout(timer)
  },
}

let lastSecond = Number.NaN
let lastText = ''

/** Remembers the last second: of the records of a busy one only the thousandths differ. */
export function toIso(milliseconds: number): string {
  const second = Math.floor(milliseconds / 1000)
  if (second !== lastSecond) {
    lastText = new Date(second * 1000).toISOString().slice(0, -4)
    lastSecond = second
  }
  return `${lastText}${String(Math.floor(milliseconds - second * 1000)).padStart(3, '0')}Z`
}

/** Resolves after the time, or rejects with the signal's reason. */
export function sleep(clock: Clock, milliseconds: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  if (signal.aborted) {
    reject(signal.reason)
    return promise
  }
  const cancel = clock.after(milliseconds, () => {
    unlink()
    resolve()
  })
  const unlink = onAbort(signal, () => {
    cancel()
    reject(signal.reason)
  })
  return promise
}

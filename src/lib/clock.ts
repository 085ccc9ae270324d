import { onAbort } from './signals.ts'
/** Code takes its time from a `Clock`, so that a test can change it. */
export type Clock = {
  /** Milliseconds since 1970, for records and expiry. */
  now(): number
  /** Milliseconds that never jump, for durations and deadlines. */
  monotonic(): number
  /** Runs `task` later. The returned function cancels it. The timer does not keep the process alive. */
  after(milliseconds: number, task: () => void): () => void
  /**
   * All gateways on one database share this clock object, so their clocks are not compared. Only for tests that change
   * the time.
   */
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

/** Caches the text of the current second, because many records are written within one second. */
export function toIso(milliseconds: number): string {
  const second = Math.floor(milliseconds / 1000)
  if (second !== lastSecond) {
    lastText = new Date(second * 1000).toISOString().slice(0, -4)
    lastSecond = second
  }
  return `${lastText}${String(Math.floor(milliseconds - second * 1000)).padStart(3, '0')}Z`
}

/** Resolves after `milliseconds`, or rejects with the reason of the signal. */
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

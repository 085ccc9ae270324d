/** The calls of one principal, server or tool: those under way, and those of the last minute by the second. */
export type Meter = {
  running: number
  /** Bytes of requests and unread answers; counted for principals only. */
  buffered: number
  /** An answer was dropped because too much was buffered. */
  full: boolean
  /** Calls within the window, the sum of `seconds`. */
  recent: number
  /** The second that was counted last. */
  second: number
  readonly seconds: Uint32Array
}

/**
 * One more than a minute has: a second counts until all of it is a minute old. So there are never more calls than the
 * bound within any minute, wherever that minute begins.
 */
const slots = 61

export function createMeter(): Meter {
  return { running: 0, buffered: 0, full: false, recent: 0, second: 0, seconds: new Uint32Array(slots) }
}

/** Milliseconds until there is room again, 0 where there is; `now` never jumps back. */
export function waitForRate(meter: Meter, most: number | undefined, now: number): number {
  if (most === undefined) return 0
  advance(meter, now)
  if (meter.recent < most) return 0
  let freed = 0
  for (let age = slots - 1; age >= 0; age--) {
    freed += meter.seconds[slotOf(meter.second - age)] ?? 0
    if (meter.recent - freed < most) return (meter.second - age + slots) * 1000 - now
  }
  return slots * 1000
}

/** One more that is under way. */
export function count(meter: Meter, now: number): void {
  countRate(meter, now)
  meter.running++
}

/** One more within the last minute. */
export function countRate(meter: Meter, now: number): void {
  advance(meter, now)
  const slot = slotOf(meter.second)
  meter.seconds[slot] = (meter.seconds[slot] ?? 0) + 1
  meter.recent++
}

/** Nothing is lost with it: no call is under way, no bytes are buffered, and no past call counts any more. */
export function isIdle(meter: Meter, now: number): boolean {
  advance(meter, now)
  return meter.running === 0 && meter.buffered === 0 && meter.recent === 0
}

/** Forgets the seconds that have passed out of the window. */
function advance(meter: Meter, now: number): void {
  const second = Math.floor(now / 1000)
  if (second === meter.second) return
  for (let passed = Math.max(meter.second + 1, second - slots + 1); passed <= second; passed++) {
    const slot = slotOf(passed)
    meter.recent -= meter.seconds[slot] ?? 0
    meter.seconds[slot] = 0
  }
  meter.second = second
}

function slotOf(second: number): number {
  return ((second % slots) + slots) % slots
}

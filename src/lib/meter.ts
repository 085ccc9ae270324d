/** The load of one principal, server or tool: running calls, and the calls of the last minute per second. */
export type Meter = {
  running: number
  /** Bytes of requests and unread answers. Only used for principals. */
  buffered: number
  /** True after an answer was dropped because too many bytes were buffered. */
  full: boolean
  /** Calls in the last minute: the sum of `seconds`. */
  recent: number
  /** The second of the last count. */
  second: number
  readonly seconds: Uint32Array
}

/**
 * One more than 60, because a second is only dropped when all of it is more than a minute old. So no interval of one
 * minute, wherever it begins, has more calls than the limit.
 */
const slots = 61

export function createMeter(): Meter {
  return { running: 0, buffered: 0, full: false, recent: 0, second: 0, seconds: new Uint32Array(slots) }
}

/** Milliseconds until another call is allowed; 0 if it is allowed now. `now` must be monotonic. */
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

/** Adds a running call. */
export function count(meter: Meter, now: number): void {
  countRate(meter, now)
  meter.running++
}

/** Adds a call to the last minute. */
export function countRate(meter: Meter, now: number): void {
  advance(meter, now)
  const slot = slotOf(meter.second)
  meter.seconds[slot] = (meter.seconds[slot] ?? 0) + 1
  meter.recent++
}

/** An idle meter can be removed: no call is running, no bytes are buffered, and the last minute has no calls. */
export function isIdle(meter: Meter, now: number): boolean {
  advance(meter, now)
  return meter.running === 0 && meter.buffered === 0 && meter.recent === 0
}

/** Clears the seconds that are older than the last minute. */
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

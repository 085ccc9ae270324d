/** Where something was found, as start and end, one after the other: cheaper than an object for each. */
export type Spans = number[]

export type Matcher = {
  add(pattern: Buffer): void
  /** The longest pattern in bytes; nothing longer can be found by it. */
  longest(): number
  size(): number
  /** Looks on from `from` until the end or until the budget is spent; returns where to go on. */
  find(bytes: Buffer, from: number, budget: number, spans: Spans): number
}

type Pattern = {
  readonly bytes: Buffer
  /** Where the window by which it is recognised stands in it. */
  readonly window: number
  /** So much of it must be there; what follows is hidden as far as it is the same. */
  readonly anchor: number
}

/** Every pattern has at least so many bytes. */
export const leastPattern = 8
const gram = 3
/** Of a window, one of so many neighbouring places is looked at: enough to come across any three bytes of it. */
const step = leastPattern - gram + 1
/** A text made to look like a long value again and again may cost no more than this for each of its bytes. */
const longestAnchor = 64
const tableBits = 17
const none: readonly Pattern[] = []

/**
 * Finds any of many patterns in one pass. Every sixth place is looked up in a table of the three-byte parts of all
 * patterns; only where one is found the eight bytes around it are looked up, and only where those are found, compared.
 */
export function createMatcher(): Matcher {
  const grams = new Uint8Array(1 << tableBits)
  /** Whether it is worth looking up a window. */
  const likely = new Uint8Array(1 << tableBits)
  const windows = new Map<number, Pattern[]>()
  let longest = 0
  let size = 0

  function add(bytes: Buffer): void {
    const anchor = Math.min(bytes.length, longestAnchor)
    const window = chooseWindow(bytes, anchor)
    const key = hashWindow(bytes, window)
    const same = windows.get(key) ?? []
    if (same.some((known) => known.bytes.equals(bytes))) return
    same.push({ bytes, window, anchor })
    windows.set(key, same)
    likely[key >>> (32 - tableBits)] = 1
    for (let at = window; at < window + step; at++) grams[hashGram(bytes, at)] = 1
    longest = Math.max(longest, bytes.length)
    size++
  }

  /** Values often begin alike, so the end says more; of two that also end alike the beginning may differ. */
  function chooseWindow(bytes: Buffer, anchor: number): number {
    const places = [anchor - leastPattern, 0, (anchor - leastPattern) >> 1]
    return places.find((place) => !windows.has(hashWindow(bytes, place))) ?? 0
  }

  function find(bytes: Buffer, from: number, budget: number, spans: Spans): number {
    const end = bytes.length - gram
    let left = budget
    let at = from
    for (; at <= end && left > 0; at += step) {
      left--
      if (grams[hashGram(bytes, at)] === 1) left -= compareAround(bytes, at, spans)
    }
    return left > 0 ? bytes.length : at
  }

  /** Returns what it cost, in steps. */
  function compareAround(bytes: Buffer, at: number, spans: Spans): number {
    let cost = step
    for (let start = Math.max(0, at - step + 1); start <= at; start++) {
      if (start + leastPattern > bytes.length) break
      const key = hashWindow(bytes, start)
      if (likely[key >>> (32 - tableBits)] === 0) continue
      for (const pattern of windows.get(key) ?? none) cost += compare(bytes, start - pattern.window, pattern, spans)
    }
    return cost
  }

  return { add, find, longest: () => longest, size: () => size }
}

function compare(bytes: Buffer, start: number, pattern: Pattern, spans: Spans): number {
  const { bytes: wanted, anchor } = pattern
  if (start < 0 || start + anchor > bytes.length) return 1
  let length = 0
  while (length < anchor && bytes[start + length] === wanted[length]) length++
  if (length < anchor) return length >> 3
  // What is hidden already need not be looked at again: a text that repeats a value must not cost its square.
  const covered = (spans.at(-1) ?? 0) - start
  let end = Math.max(anchor, Math.min(covered, wanted.length))
  while (end < wanted.length && start + end < bytes.length && bytes[start + end] === wanted[end]) end++
  addSpan(spans, start, start + end)
  return (end - length) >> 3
}

/** Most touch the one before: a text full of findings must not fill the memory with them. */
function addSpan(spans: Spans, start: number, end: number): void {
  const last = spans.length - 1
  const lastStart = spans[last - 1] ?? Number.POSITIVE_INFINITY
  const lastEnd = spans[last] ?? 0
  if (start >= lastStart && start <= lastEnd) spans[last] = Math.max(lastEnd, end)
  else spans.push(start, end)
}

function hashGram(bytes: Buffer, at: number): number {
  return (((bytes[at] ?? 0) << 10) ^ ((bytes[at + 1] ?? 0) << 5) ^ (bytes[at + 2] ?? 0)) & ((1 << tableBits) - 1)
}

function hashWindow(bytes: Buffer, at: number): number {
  return Math.imul(wordAt(bytes, at), 0x9e3779b1) ^ Math.imul(wordAt(bytes, at + 4), 0x85ebca6b)
}

function wordAt(bytes: Buffer, at: number): number {
  return (bytes[at] ?? 0) | ((bytes[at + 1] ?? 0) << 8) | ((bytes[at + 2] ?? 0) << 16) | ((bytes[at + 3] ?? 0) << 24)
}

/** In order, and those that touch as one. */
export function mergeSpans(spans: Spans): Spans {
  const pairs: [number, number][] = []
  for (let index = 0; index < spans.length; index += 2) pairs.push([spans[index] ?? 0, spans[index + 1] ?? 0])
  pairs.sort((left, right) => left[0] - right[0])
  const merged: Spans = []
  for (const [start, end] of pairs) {
    const last = merged.length - 1
    if (last > 0 && start <= (merged[last] ?? 0)) merged[last] = Math.max(merged[last] ?? 0, end)
    else merged.push(start, end)
  }
  return merged
}

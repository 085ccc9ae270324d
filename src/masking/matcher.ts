/** Found ranges as a flat list: start, end, start, end. Cheaper than one object per range. */
export type Spans = number[]

export type Matcher = {
  add(pattern: Buffer): void
  /** The length of the longest pattern in bytes. A match is never longer. */
  longest(): number
  size(): number
  /** Searches from `from` until the end or until the budget is used up. Returns the position to continue from. */
  find(bytes: Buffer, from: number, budget: number, spans: Spans): number
}

type Pattern = {
  readonly bytes: Buffer
  /** The offset of the window in the pattern. The search looks up this window. */
  readonly window: number
  /** The number of bytes that must match. Bytes after them are masked as far as they match as well. */
  readonly anchor: number
}

/** Patterns must have at least this many bytes. */
export const leastPattern = 8
const gram = 3
/** The search looks at every sixth position. That is enough to hit one of the 3-byte parts of any 8-byte window. */
const step = leastPattern - gram + 1
/** Limits the cost per byte for a text that repeats the beginning of a long value many times. */
const longestAnchor = 64
const tableBits = 17
const none: readonly Pattern[] = []

/**
 * Finds many patterns in one pass. Every sixth position is looked up in a table of the 3-byte parts of all patterns.
 * Only after a hit, the 8-byte windows around it are looked up, and only after another hit the bytes are compared.
 */
export function createMatcher(): Matcher {
  const grams = new Uint8Array(1 << tableBits)
  /** A small table that filters out most windows before the lookup in `windows`. */
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

  /** Values often have the same beginning, so the end is tried first, then the beginning, then the middle. */
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

  /** Returns the cost in steps. */
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
  // Skips bytes that are masked already. Otherwise a text that repeats a value would take quadratic time.
  const covered = (spans.at(-1) ?? 0) - start
  let end = Math.max(anchor, Math.min(covered, wanted.length))
  while (end < wanted.length && start + end < bytes.length && bytes[start + end] === wanted[end]) end++
  addSpan(spans, start, start + end)
  return (end - length) >> 3
}

/** Merges ranges that touch, so that a text full of matches does not use much memory. */
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

/** Sorts the ranges and merges those that touch. */
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

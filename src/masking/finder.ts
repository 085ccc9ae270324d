import { toForms } from './forms.ts'
import { createMatcher, type Matcher, mergeSpans, type Spans } from './matcher.ts'
import { findPrivateKeys, findTokens } from './tokens.ts'

/** Finds every value that must be masked. */
export type Finder = {
  hide(value: string): void
  readonly matcher: Matcher
  /** Whether JSON escapes in these bytes could hide a value. */
  mayBeEscaped(bytes: Buffer): boolean
  /** Whether one of the values contains a line break. */
  hasLines(): boolean
  /** Searches in one go. For short texts. */
  find(bytes: Buffer): Spans
  /** Searches in portions. For long texts: the caller decides when to continue. */
  findSlowly(bytes: Buffer): Generator<undefined, Spans>
}

/** Search steps between two yields. One portion takes a few milliseconds. */
const portion = 100_000

export function createFinder(): Finder {
  const matcher = createMatcher()
  let unusual = false
  let lines = false

  function find(bytes: Buffer, from: number, spans: Spans): number {
    return matcher.size() === 0 ? bytes.length : matcher.find(bytes, from, portion, spans)
  }

  function* findSlowly(bytes: Buffer): Generator<undefined, Spans> {
    const spans: Spans = []
    for (let at = findPrivateKeys(bytes, 0, spans); at < bytes.length; at = findPrivateKeys(bytes, at, spans)) yield
    for (let at = findTokens(bytes, 0, portion, spans); at < bytes.length; at = findTokens(bytes, at, portion, spans))
      yield
    for (let at = find(bytes, 0, spans); at < bytes.length; at = find(bytes, at, spans)) yield
    return spans.length > 2 ? mergeSpans(spans) : spans
  }

  return {
    matcher,
    hide(value) {
      for (const form of toForms(value)) matcher.add(Buffer.from(form))
      if (/[^\x20-\x7e]/.test(value)) unusual = true
      if (value.includes('\n')) lines = true
    },
    mayBeEscaped: (bytes) => matcher.size() > 0 && hasHidingEscape(bytes, unusual),
    hasLines: () => lines,
    find(bytes) {
      const spans: Spans = []
      for (let at = 0; at < bytes.length; ) at = findPrivateKeys(bytes, at, spans)
      findTokens(bytes, 0, Number.POSITIVE_INFINITY, spans)
      if (matcher.size() > 0) matcher.find(bytes, 0, Number.POSITIVE_INFINITY, spans)
      return spans.length > 2 ? mergeSpans(spans) : spans
    },
    findSlowly,
  }
}

const escapedSlash = Buffer.from('\\/')
const unicodeEscape = Buffer.from('\\u')

/**
 * Finds `\/`, and `\u` for a printable ASCII character. With `any`, because a value has other characters, finds every
 * `\u`.
 */
function hasHidingEscape(bytes: Buffer, any: boolean): boolean {
  if (bytes.indexOf(0x5c) === -1) return false
  if (bytes.indexOf(escapedSlash) !== -1) return true
  for (let at = bytes.indexOf(unicodeEscape); at !== -1; at = bytes.indexOf(unicodeEscape, at + 2)) {
    if (any) return true
    if (bytes[at + 2] === 0x30 && bytes[at + 3] === 0x30 && ((bytes[at + 4] ?? 0) & 0xf8) === 0x30) return true
  }
  return false
}

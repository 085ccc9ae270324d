import { toForms } from './forms.ts'
import { createMatcher, type Matcher, mergeSpans, type Spans } from './matcher.ts'
import { findPrivateKeys, findTokens } from './tokens.ts'

/** Looks for everything that must be hidden. */
export type Finder = {
  hide(value: string): void
  readonly matcher: Matcher
  /** Whether a value may stand there in characters that JSON writes in another way. */
  mayBeEscaped(bytes: Buffer): boolean
  /** A value goes over more than one line. */
  hasLines(): boolean
  /** All at once: for what is short. */
  find(bytes: Buffer): Spans
  /** In portions, for what is long: whoever asks decides when to go on. */
  findSlowly(bytes: Buffer): Generator<undefined, Spans>
}

/** Steps between two moments at which others get a turn: a few milliseconds. */
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

/** `\/`, and `\u` for a character that needs none; for any, where a value has unusual characters itself. */
function hasHidingEscape(bytes: Buffer, any: boolean): boolean {
  if (bytes.indexOf(0x5c) === -1) return false
  if (bytes.indexOf(escapedSlash) !== -1) return true
  for (let at = bytes.indexOf(unicodeEscape); at !== -1; at = bytes.indexOf(unicodeEscape, at + 2)) {
    if (any) return true
    if (bytes[at + 2] === 0x30 && bytes[at + 3] === 0x30 && ((bytes[at + 4] ?? 0) & 0xf8) === 0x30) return true
  }
  return false
}

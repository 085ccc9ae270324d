import type { JsonValue } from '../contract/json.ts'
import { leastMasked } from '../contract/secret.ts'
import { type Masked, maskStrings, replaceSpans } from './bytes.ts'
import { createFinder } from './finder.ts'
import { createMaskedStream, type MaskedStream } from './stream.ts'

export type { Masked } from './bytes.ts'
export {
  findLiterals,
  findPlaceholders,
  hideAllLiterals,
  hideLiterals,
  type Literal,
  type LiteralFields,
  type LiteralPlace,
  replaceLiterals,
  rewrite,
  toPlaceKey,
} from './literals.ts'
export type { MaskedStream } from './stream.ts'

/** The values that must be masked, and the filter for every text that could contain one. */
export type Masking = {
  /** Masks this value from now on. Shorter values than `leastMasked` are ignored: they would match unrelated text. */
  hide(value: string): void
  /** Masks an environment variable that was passed to a server, unless its name or value shows that it is not a secret. */
  hideVariable(name: string, value: string): void
  text(text: string): string
  /** Masks every string in a value, including object keys. Returns the same object if nothing was masked. */
  value<Value>(value: Value): Value
  /** Masks one JSON message; undefined if the message is too long and needs `jsonSlowly`. */
  json(bytes: Buffer): Masked | undefined
  /** Masks a long message. Yields to the event loop between portions. */
  jsonSlowly(bytes: Buffer): Promise<Masked>
  stream(): MaskedStream
}

/** Messages up to this size are masked synchronously: the delay is too short to notice. */
const quick = 256 * 1024
/** Values of replaced secrets stay masked, so the set only grows. This limit is far above normal use. */
const mostValues = 10_000

export function createMasking(): Masking {
  const finder = createFinder()
  const values = new Set<string>()

  function hide(value: string): void {
    if (value.length < leastMasked || values.has(value) || values.size >= mostValues) return
    values.add(value)
    finder.hide(value)
  }

  function text(given: string): string {
    if (given.length < leastMasked) return given
    const bytes = Buffer.from(given)
    const spans = finder.find(bytes)
    return spans.length === 0 ? given : replaceSpans(bytes, spans).toString('utf8')
  }

  function mask(value: JsonValue): JsonValue {
    if (typeof value === 'string') return text(value)
    if (typeof value !== 'object' || value === null) return value
    if (Array.isArray(value)) {
      const masked = value.map(mask)
      return masked.every((item, index) => item === value[index]) ? value : masked
    }
    const entries = Object.entries(value)
    const masked = entries.map(([key, item]): [string, JsonValue] => [text(key), mask(item)])
    const same = masked.every(([key, item], index) => key === entries[index]?.[0] && item === entries[index]?.[1])
    return same ? value : Object.fromEntries(withDistinctKeys(masked, entries))
  }

  return {
    hide,
    hideVariable(name, value) {
      if (!isEvidentlyPlain(name, value)) hide(value)
    },
    text,
    value: (value) => mask(value as JsonValue) as typeof value, // `mask` replaces strings with strings and keeps all other types
    json(bytes) {
      if (bytes.length > quick) return undefined
      if (finder.find(bytes).length === 0 && !finder.mayBeEscaped(bytes)) return { bytes, found: 0 }
      return finish(maskStrings(bytes, finder))
    },
    async jsonSlowly(bytes) {
      const spans = await withPauses(finder.findSlowly(bytes))
      if (spans.length === 0 && !finder.mayBeEscaped(bytes)) return { bytes, found: 0 }
      return withPauses(maskStrings(bytes, finder))
    },
    stream: () => createMaskedStream(finder),
  }
}

type Entry = readonly [key: string, item: JsonValue]

/**
 * Numbers keys that are equal after masking. Otherwise the later key would overwrite the earlier one and its value
 * would be lost.
 */
function withDistinctKeys(masked: readonly Entry[], entries: readonly Entry[]): Entry[] {
  const taken = new Set(masked.filter(([key], index) => key === entries[index]?.[0]).map(([key]) => key))
  const counts = new Map<string, number>()
  return masked.map(([key, item], index) => {
    if (key === entries[index]?.[0]) return [key, item]
    let count = counts.get(key) ?? 1
    while (taken.has(toNumbered(key, count))) count++
    counts.set(key, count + 1)
    taken.add(toNumbered(key, count))
    return [toNumbered(key, count), item]
  })
}

function toNumbered(key: string, count: number): string {
  return count === 1 ? key : `${key} (${count})`
}

/** Paths and ordinary settings appear in many results. Masking them would make these results unreadable. */
function isEvidentlyPlain(name: string, value: string): boolean {
  if (/(^|_)(HOME|PATH|DIR|FOLDER|HOST|PORT|REGION|LEVEL|LANG|USER|SHELL)$/i.test(name)) return true
  if (/^(\/|~\/|[A-Za-z]:\\)/.test(value)) return true
  if (!/^https?:\/\//.test(value) || !URL.canParse(value)) return false
  const { username, password, search } = new URL(value)
  return username === '' && password === '' && search === ''
}

function finish<Result>(work: Generator<undefined, Result>): Result {
  while (true) {
    const step = work.next()
    if (step.done) return step.value
  }
}

/** Yields to the event loop after each portion. */
async function withPauses<Result>(work: Generator<undefined, Result>): Promise<Result> {
  while (true) {
    const step = work.next()
    if (step.done) return step.value
    await new Promise((resolve) => setImmediate(resolve))
  }
}

import type { JsonValue } from '../contract/json.ts'
import { leastMasked } from '../contract/secret.ts'
import { type Masked, maskStrings, replaceSpans } from './bytes.ts'
import { createFinder } from './finder.ts'
import { createMaskedStream, type MaskedStream } from './stream.ts'

export type { Masked } from './bytes.ts'
export type { MaskedStream } from './stream.ts'

/** The values that nobody gets to see, and the filter through which everything goes that could hold one. */
export type Masking = {
  /** From now on this value is hidden. Too short a one is not: it would turn up by chance. */
  hide(value: string): void
  /** A variable of the environment that was handed to a server: hidden unless it is evidently no secret. */
  hideVariable(name: string, value: string): void
  text(text: string): string
  /** Every text in a value, names included; the value itself if there is nothing to hide. */
  value<Value>(value: Value): Value
  /** One message of JSON; undefined when it is so long that it must be looked at slowly. */
  json(bytes: Buffer): Masked | undefined
  /** The same for a long message, with turns for others in between. */
  jsonSlowly(bytes: Buffer): Promise<Masked>
  stream(): MaskedStream
}

/** Up to here nobody notices the time that it takes. */
const quick = 256 * 1024
/** Values of former secrets stay hidden; nobody has so many. */
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
    value: (value) => mask(value as JsonValue) as typeof value, // a text for a text, everything else as it was
    json(bytes) {
      if (bytes.length > quick) return undefined
      if (finder.find(bytes).length === 0 && !finder.mayBeEscaped(bytes)) return { bytes, found: 0 }
      return finish(maskStrings(bytes, finder))
    },
    async jsonSlowly(bytes) {
      const spans = await inTurns(finder.findSlowly(bytes))
      if (spans.length === 0 && !finder.mayBeEscaped(bytes)) return { bytes, found: 0 }
      return inTurns(maskStrings(bytes, finder))
    },
    stream: () => createMaskedStream(finder),
  }
}

type Entry = readonly [key: string, item: JsonValue]

/** Two keys that are masked alike would become one, and the value of the other would be shown to nobody. */
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

/** Places and settings, which results are full of: hiding them would garble every second answer. */
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

/** Nobody else waits longer than one portion takes. */
async function inTurns<Result>(work: Generator<undefined, Result>): Promise<Result> {
  while (true) {
    const step = work.next()
    if (step.done) return step.value
    await new Promise((resolve) => setImmediate(resolve))
  }
}

import type { JsonValue } from '../contract/json.ts'
import { isObject } from '../lib/json.ts'

/** Two words or more in one, as tools are called and as ordinary text rarely has them. */
const compound = /[A-Za-z0-9]+(?:[_.-][A-Za-z0-9]+)+|[a-z]+(?:[A-Z][a-z0-9]+)+/g
/** Cheaper, and false for most texts. */
const maybeCompound = /\w[_.-]\w|[a-z][A-Z]/
const shortest = 8
const most = 500

/** Whether a name says by itself that it is a tool's: `search` stands in any text, `create_issue` does not. */
export function isTelling(name: string): boolean {
  return name.length >= shortest && name.match(compound)?.[0] === name
}

/** Words in a definition's prose that could be the names of tools. Names of parameters are no prose. */
export function findMentions(value: JsonValue): readonly string[] {
  const found = new Set<string>()
  for (const text of everyProse(value)) {
    if (!maybeCompound.test(text)) continue
    for (const [word] of text.matchAll(compound)) {
      if (word.length >= shortest) found.add(word)
      if (found.size >= most) return [...found]
    }
  }
  return [...found]
}

const prose = new Set(['description', 'title', 'instructions'])

function* everyProse(value: JsonValue): Generator<string> {
  if (Array.isArray(value)) for (const item of value) yield* everyProse(item)
  if (!isObject(value)) return
  for (const [key, inner] of Object.entries(value)) {
    if (typeof inner === 'string' && prose.has(key)) yield inner
    else yield* everyProse(inner)
  }
}

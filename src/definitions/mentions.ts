import type { JsonValue } from '../contract/json.ts'
import { isObject } from '../lib/json.ts'

/** Compound words such as `create_issue`: common as tool names, rare in ordinary text. */
const compound = /[A-Za-z0-9]+(?:[_.-][A-Za-z0-9]+)+|[a-z]+(?:[A-Z][a-z0-9]+)+/g
/** A cheaper check that rules out most texts. */
const maybeCompound = /\w[_.-]\w|[a-z][A-Z]/
const shortest = 8
const most = 500

/** Whether a name is distinctive: `search` occurs in any text, `create_issue` does not. */
export function isDistinctive(name: string): boolean {
  return name.length >= shortest && name.match(compound)?.[0] === name
}

/** Words in the texts of a definition that could be names of tools. Parameter names are ignored. */
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

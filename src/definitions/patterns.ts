import { RE2JS } from 're2js'

const maxLength = 1000
const maxRepetitions = 10
const repetition = /(?:[*+]|\{(\d+)(,?)(\d*)\})/y

/** Whether every client can compile the regular expression and none can be blocked by it. */
export function isHarmlessPattern(pattern: string): boolean {
  return pattern.length <= maxLength && compiles(pattern) && !isExplosive(pattern)
}

/**
 * The pattern must compile in a linear-time engine, which rejects risky features, and in the engine of clients, because
 * clients refuse the whole list of tools if one pattern does not compile. The pattern is never executed.
 */
function compiles(pattern: string): boolean {
  try {
    RE2JS.compile(pattern)
    new RegExp(pattern, 'u')
    return true
  } catch {
    return false
  }
}

/** A repeated group with several ways to match, or many repetitions in a row, can backtrack exponentially. */
function isExplosive(pattern: string): boolean {
  const varies = [false]
  let repetitions = 0
  for (let at = 0; at < pattern.length; at++) {
    const character = pattern[at]
    if (character === '[') at = endOfClass(pattern, at)
    if (character === '(') varies.push(false)
    if (character === '|') varies[varies.length - 1] = true
    if (character === '\\') at++
    if (character === '(' || character === '|') continue
    const varied = character === ')' && varies.pop() === true
    const repeats = readRepetition(pattern, at + 1)
    if (varied && repeats.most > 1) return true
    if (repeats.most === Number.POSITIVE_INFINITY && ++repetitions > maxRepetitions) return true
    if (varied || repeats.least !== repeats.most) varies[varies.length - 1] = true
    at += repeats.length
  }
  return false
}

/** Reads a quantifier: its minimum, its maximum and its length in the pattern. */
function readRepetition(pattern: string, at: number): { least: number; most: number; length: number } {
  if (pattern[at] === '?') return { least: 0, most: 1, length: 1 }
  repetition.lastIndex = at
  const found = repetition.exec(pattern)
  if (!found) return { least: 1, most: 1, length: 0 }
  const [mark, least, comma, most] = found
  if (least === undefined) return { least: 0, most: Number.POSITIVE_INFINITY, length: mark.length }
  const open = comma === ',' && most === ''
  return {
    least: Number(least),
    most: open ? Number.POSITIVE_INFINITY : Number(most || least),
    length: mark.length,
  }
}

function endOfClass(pattern: string, from: number): number {
  for (let at = from + 1; at < pattern.length; at++) {
    if (pattern[at] === '\\') at++
    else if (pattern[at] === ']') return at
  }
  return pattern.length
}

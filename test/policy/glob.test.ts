import fc from 'fast-check'
import { expect, it } from 'vitest'
import { matchesAny, matchesGlob } from '../../src/lib/glob.ts'

/** The meaning of a pattern, written down as plainly as possible. */
function means(pattern: string, text: string): boolean {
  const [first, ...rest] = pattern
  if (first === undefined) return text === ''
  if (first === '*') return means(rest.join(''), text) || (text !== '' && means(pattern, text.slice(1)))
  return text !== '' && (first === '?' || first === text[0]) && means(rest.join(''), text.slice(1))
}

const texts = fc.stringMatching(/^[ab_]{0,10}$/)
const patterns = fc.stringMatching(/^[ab_*?]{0,8}$/)

it('matches exactly what the meaning of the pattern says', () => {
  fc.assert(
    fc.property(patterns, texts, (pattern, text) => {
      expect(matchesGlob(pattern, text)).toBe(means(pattern, text))
    }),
    { numRuns: 5000 },
  )
})

it('means the same in a long text, before it and behind it', () => {
  const long = 'x'.repeat(300)
  fc.assert(
    fc.property(patterns, texts, (pattern, text) => {
      const meant = means(pattern, text)
      expect(matchesGlob(long + pattern, long + text)).toBe(meant)
      expect(matchesGlob(pattern + long, text + long)).toBe(meant)
      expect(matchesGlob(`*x${pattern}`, long + text)).toBe(means(`*x${pattern}`, `xxxxxxxxxx${text}`))
      expect(matchesGlob(`*${pattern}*`, long + text + long)).toBe(means(`*${pattern}*`, `xxxxxxxx${text}xxxxxxxx`))
    }),
    { numRuns: 200 },
  )
})

it('takes every character but the star and the question mark for itself', () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), (pattern, text) => {
      fc.pre(!/[*?]/.test(pattern))
      expect(matchesGlob(pattern, text)).toBe(pattern === text)
    }),
  )
  expect(matchesGlob('a.c', 'abc')).toBe(false)
  expect(matchesGlob('[ab]', 'a')).toBe(false)
  expect(matchesGlob('*', '.hidden/with/slashes')).toBe(true)
})

it('ends on patterns that make a backtracking matcher take for ever', () => {
  const text = 'a'.repeat(20_000)
  expect(matchesGlob(`${'*a'.repeat(200)}b`, text)).toBe(false)
  expect(matchesGlob(`${'*'.repeat(5000)}b`, text)).toBe(false)
  expect(matchesGlob(`${'?*'.repeat(500)}b`, text)).toBe(false)
})

it('matches a list of patterns when any of them matches, and an empty list never', () => {
  expect(matchesAny(['x*', 'a?'], 'ab')).toBe(true)
  expect(matchesAny(['x*'], 'ab')).toBe(false)
  expect(matchesAny([], 'ab')).toBe(false)
})

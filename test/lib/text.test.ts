import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { nearest, splitsPair, wholeEnd } from '../../src/lib/text.ts'

describe('nearest', () => {
  it.each([
    ['servrs', ['servers', 'rules', 'agents'], 'servers'],
    ['Servers', ['servers'], 'servers'],
    ['githib', ['gitlab', 'github'], 'github'],
    ['x', ['y'], 'y'],
    ['completely', ['different'], undefined],
    ['anything', [], undefined],
  ])('suggests for %s among %j: %s', (word, known, expected) => {
    expect(nearest(word, known)).toBe(expected)
  })

  it('suggests only what is known, and a known word for itself', () => {
    fc.assert(
      fc.property(fc.string(), fc.array(fc.string()), (word, known) => {
        const found = nearest(word, known)
        if (found !== undefined) expect(known).toContain(found)
        if (known.includes(word)) expect(found?.toLowerCase()).toBe(word.toLowerCase())
      }),
    )
  })
})

describe('cutting', () => {
  it('never takes a character apart, and always comes further', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.nat(50), fc.integer({ min: 1, max: 9 }), (text, from, length) => {
        fc.pre(from < text.length && !splitsPair(text, from))
        const end = wholeEnd(text, from, from + length)
        expect(end).toBeGreaterThan(from)
        expect(end).toBeLessThanOrEqual(Math.max(from + length, from + 2))
        expect(text.slice(from, end).isWellFormed()).toBe(true)
      }),
    )
  })
})

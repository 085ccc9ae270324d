import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { diffLines } from '../../src/shared/line-difference.ts'

describe('the difference of two texts', () => {
  const lines = fc.array(fc.constantFrom('a', 'b', 'c', ''), { maxLength: 12 })

  it('contains every line of both texts in order', () => {
    fc.assert(
      fc.property(lines, lines, (before, after) => {
        const difference = diffLines(before, after)
        const without = (left: string) => difference.filter(({ kind }) => kind !== left).map(({ line }) => line)
        expect(without('added')).toEqual(before)
        expect(without('removed')).toEqual(after)
      }),
    )
  })

  it('shows only what changed in a long text', () => {
    const before = Array.from({ length: 30_000 }, (_, index) => `line ${index}`)
    const changed = diffLines(before, before.with(15_000, 'another')).filter(({ kind }) => kind !== 'same')
    expect(changed).toEqual([
      { kind: 'removed', line: 'line 15000' },
      { kind: 'added', line: 'another' },
    ])
  })

  it('shows long texts that have nothing in common one after the other', () => {
    const before = Array.from({ length: 30_000 }, (_, index) => `old ${index}`)
    const after = Array.from({ length: 30_000 }, (_, index) => `new ${index}`)
    const kinds = diffLines(before, after).map(({ kind }) => kind)
    expect(kinds.lastIndexOf('removed')).toBe(29_999)
    expect(kinds.indexOf('added')).toBe(30_000)
  })
})

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { nearest, toVisible } from '../../src/lib/text.ts'

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

describe('toVisible', () => {
  it.each([
    ['zero\u200bwidth', 'zero\\u{200b}width'],
    ['right\u202eleft', 'right\\u{202e}left'],
    ['\x1b[31mred', '\\u{1b}[31mred'],
    ['tag\u{e0041}', 'tag\\u{e0041}'],
    ['Příliš 漢字 👩', 'Příliš 漢字 👩'],
    ['two\nlines', 'two\nlines'],
  ])('shows %j as %j', (text, shown) => {
    expect(toVisible(text)).toBe(shown)
  })

  it('leaves nothing that a terminal would obey or that would turn text around', () => {
    const obeyed = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2066-\u2069]/
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(toVisible(text)).not.toMatch(obeyed)
      }),
    )
  })
})

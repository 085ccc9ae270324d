import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { nearest, splitsPair, toVisible, toVisibleJson, wholeEnd } from '../../src/lib/text.ts'

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

/** Whatever is not shown as itself, by the tables of Unicode; a line end and a tab are. */
const hides = /[[\p{Default_Ignorable_Code_Point}\p{Cf}\p{Cc}\p{Cs}\p{Z}\u2800]--[ \n\t]]/v
const anyText = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({
    unit: fc.constantFrom(
      'a',
      ' ',
      '\n',
      '\x1b[31m',
      '\u202e',
      '\u200b',
      '\u{e0041}',
      '\u{e0100}',
      '\x9b',
      '\x7f',
      '\ud800',
      '\u3164',
      '\xa0',
      '❤',
    ),
  }),
)

describe('toVisible', () => {
  it.each([
    ['zero\u200bwidth', 'zero\\u{200b}width'],
    ['right\u202eleft', 'right\\u{202e}left'],
    ['\x1b[31mred', '\\u{1b}[31mred'],
    ['\x9b31m', '\\u{9b}31m'],
    ['back\rspace\x08\x7f', 'back\\u{d}space\\u{8}\\u{7f}'],
    ['tag\u{e0041}', 'tag\\u{e0041}'],
    ['smuggled\u{e0101}\ufe00', 'smuggled\\u{e0101}\\u{fe00}'],
    ['line\u2028paragraph\u2029', 'line\\u{2028}paragraph\\u{2029}'],
    ['hard\u00a0wide\u3000thin\u2009', 'hard\\u{a0}wide\\u{3000}thin\\u{2009}'],
    ['filler\u3164braille\u2800', 'filler\\u{3164}braille\\u{2800}'],
    ['half\ud83d', 'half\\u{d83d}'],
    ['Příliš 漢字 👩 ❤\ufe0f', 'Příliš 漢字 👩 ❤\ufe0f'],
    ['❤\ufe0f\ufe0f', '❤\ufe0f\\u{fe0f}'],
    ['two\nlines\tand a tab', 'two\nlines\tand a tab'],
  ])('shows %j as %j', (text, shown) => {
    expect(toVisible(text)).toBe(shown)
  })

  it('leaves nothing that hides, is obeyed or turns text around, and shows the rest as it is', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const shown = toVisible(text)
        expect(shown.replace(/(?<=\p{Emoji})[\ufe0e\ufe0f]/gu, '')).not.toMatch(hides)
        expect(shown.replace(/\\u\{([0-9a-f]+)\}/g, (_, code) => String.fromCodePoint(Number.parseInt(code, 16)))).toBe(
          text,
        )
        expect(toVisible(shown)).toBe(shown)
      }),
    )
  })

  it('leaves a JSON document what it says', () => {
    fc.assert(
      fc.property(fc.dictionary(anyText, anyText), (value) => {
        const json = toVisibleJson(JSON.stringify(value, null, 2))
        expect(JSON.parse(json)).toEqual(JSON.parse(JSON.stringify(value)))
        expect(json.replace(/(?<=\p{Emoji})[\ufe0e\ufe0f]/gu, '')).not.toMatch(hides)
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

import { describe, expect, it } from 'vitest'
import { editDocument } from '../../src/documents/edit.ts'
import { type DocumentFormat, parseForeign, parseText } from '../../src/documents/parse.ts'
import type { Path } from '../../src/documents/values.ts'

function edit(text: string, path: Path, value: unknown): string {
  const parsing = parseText('jsonc', text)
  if (!parsing.ok) throw new Error(parsing.faults[0]?.message)
  return editDocument(text, 'jsonc', { steps: [{ path, value }], base: path.slice(0, -1), value: parsing.parsed.value })
}

describe('JSON with comments', () => {
  const text = `{
  // of the whole
  "servers": {
    "one": { "url": "https://one.example.com" }, // the first
    /* above the second */
    "two": { "url": "https://two.example.com" }, // the second
  },
}
`

  it('is read with its comments and trailing commas', () => {
    expect(parseText('jsonc', text)).toMatchObject({ parsed: { value: { servers: { two: {} } } } })
    expect(parseText('json', text).ok).toBe(false)
  })

  it('keeps every comment at its place when an entry is added after the last one, and its bytes when it is removed', () => {
    const added = edit(text, ['servers', 'three'], { url: 'https://three.example.com' })
    expect(added).toContain('"two": { "url": "https://two.example.com" }, // the second\n    "three": {')
    expect(edit(added, ['servers', 'three'], undefined)).toBe(text)
  })

  it.each([
    ['{\n  "a": 1 // about a\n}\n', '{\n  "a": 1, // about a\n  "b": 2\n}\n'],
    [
      '{\n  "a": 1 /* about a */ // more\n  // below\n}\n',
      '{\n  "a": 1, /* about a */ // more\n  "b": 2\n  // below\n}\n',
    ],
    ['{ "a": 1 /* about a */ }', '{ "a": 1, "b": 2 /* about a */ }'],
    ['{\n  // nothing yet\n}\n', '{\n  "b": 2\n  // nothing yet\n}\n'],
    ['{ /* nothing */ }', '{ "b": 2 /* nothing */ }'],
    ['{}', '{\n  "b": 2\n}'],
  ])('keeps the comments of %j when a property is added', (before, after) => {
    expect(edit(before, ['b'], 2)).toBe(after)
  })

  it.each([
    ['{\n  "a": 1, // about a\n  // above b\n  "b": 2\n}\n', '{\n  "a": 1 // about a\n  // above b\n}\n'],
    ['{\n  "b": 2, // about b\n  "a": 1 // about a\n}\n', '{\n  // about b\n  "a": 1 // about a\n}\n'],
    ['{\n  "a": 1, // about a\n  "b": 2,\n  "c": 3\n}\n', '{\n  "a": 1, // about a\n  "c": 3\n}\n'],
    ['{ "a": 1, "b": 2 }', '{ "a": 1 }'],
    ['{ "b": 2, "a": 1 }', '{ "a": 1 }'],
    ['{\n  // alone\n  "b": 2\n}\n', '{\n  // alone\n}\n'],
  ])('keeps the comments of %j when a property is removed', (before, after) => {
    expect(edit(before, ['b'], undefined)).toBe(after)
  })
})

describe('a text of somebody else', () => {
  const deep = (open: string, close: string) => open.repeat(200_000) + close.repeat(200_000)
  const bomb = `a: &a [${'x, '.repeat(500)}x]\n${Array.from({ length: 20 }, (_, index) => `k${index}: &k${index} [*a, *a, *a, *a]`).join('\n')}\n`
  const wide = `a: &a "${'x'.repeat(10_000)}"\nb: [${'*a, '.repeat(98)}*a]\n`

  it.each<readonly [string, DocumentFormat, string, string]>([
    ['a long text', 'yaml', `a: ${'x'.repeat(600_000)}`, 'is longer than'],
    ['deep lists in JSON', 'jsonc', deep('[', ']'), 'nested too deeply'],
    ['deep maps in JSON', 'jsonc', deep('{"a":', '}'), 'nested too deeply'],
    ['deep lists in YAML', 'yaml', deep('[', ']'), 'nested too deeply'],
    [
      'deep blocks in YAML',
      'yaml',
      Array.from({ length: 250 }, (_, depth) => `${' '.repeat(depth)}a:`).join('\n'),
      'nested too deeply',
    ],
    ['deep lists in TOML', 'toml', `a = ${deep('[', ']')}`, 'is not TOML'],
    [
      'aliases of aliases',
      'yaml',
      bomb.replace('k1: &k1 [*a, *a, *a, *a]', `k1: &k1 [${'*a, '.repeat(200)}*a]`),
      'aliases',
    ],
    ['an alias that is used often', 'yaml', wide, 'has too many values'],
  ])('is refused if it has %s', (_, format, text, message) => {
    expect(parseForeign(format, text)).toMatchObject({
      ok: false,
      faults: expect.arrayContaining([expect.objectContaining({ message: expect.stringContaining(message) })]),
    })
  })

  it('is not refused for a normal size', () => {
    expect(parseForeign('yaml', 'a: &a { b: c }\nd: *a\n')).toMatchObject({ parsed: { value: { d: { b: 'c' } } } })
  })
})

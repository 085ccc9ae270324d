import { describe, expect, it } from 'vitest'
import { editDocument } from '../../src/documents/edit.ts'
import { DocumentError } from '../../src/documents/error.ts'
import { type Format, parseText } from '../../src/documents/parse.ts'
import type { Path } from '../../src/documents/values.ts'

function edit(format: Format, text: string, path: Path, value: unknown): string {
  const parsing = parseText(format, text)
  if (!parsing.ok) throw new Error(parsing.faults[0]?.message)
  return editDocument(text, format, { steps: [{ path, value }], base: path.slice(0, -1), value: parsing.parsed.value })
}

const texts: readonly (readonly [Format, string])[] = [
  ['yaml', '# of the whole\nshop:\n  open: true # until six\n  name: "Corner"\n'],
  ['json', '{\n  "shop": { "open": true,   "name": "Corner" }\n}\n'],
  ['toml', '# of the whole\n[shop]\nopen = true # until six\nname = "Corner"\n'],
]

describe.each(texts)('an edit of %s', (format, text) => {
  it('changes one value and no other byte', () => {
    expect(edit(format, text, ['shop', 'open'], false)).toBe(text.replace('true', 'false'))
  })

  it('is undone by the opposite edit', () => {
    const longer = edit(format, text, ['shop', 'floor'], 2)
    expect(parseText(format, longer)).toMatchObject({ parsed: { value: { shop: { open: true, floor: 2 } } } })
    expect(edit(format, longer, ['shop', 'floor'], undefined)).toBe(text)
  })
})

it('refuses an edit that the form of the document does not allow', () => {
  const inline = 'shops = { corner = { open = true } }\n'
  expect(() => edit('toml', inline, ['shops', 'corner', 'open'], false)).toThrow(DocumentError)
})

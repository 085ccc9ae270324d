import fc from 'fast-check'
import { expect, it } from 'vitest'
import { toCsvRow } from '../../src/audit/export.ts'
import { toVisible } from '../../src/shared/visible.ts'

/** The cells that a reader of RFC 4180 finds with this separator. A quotation mark opens a cell only at its beginning. */
function parseCsv(text: string, separator = ','): string[][] {
  const rows: string[][] = []
  let [row, field, quoted, begun] = [[] as string[], '', false, false]
  for (let at = 0; at < text.length; at++) {
    const character = text[at] ?? ''
    if (quoted) {
      if (character !== '"') field += character
      else if (text[at + 1] === '"') field += text[++at]
      else quoted = false
    } else if (character === '"' && !begun) [quoted, begun] = [true, true]
    else if (character === separator) [row, field, begun] = [[...row, field], '', false]
    else if (character === '\n' || text.startsWith('\r\n', at)) {
      rows.push([...row, field])
      ;[row, field, begun] = [[], '', false]
      if (character === '\r') at++
    } else [field, begun] = [field + character, true]
  }
  return rows
}

/** The same for a reader that knows no quotation marks. */
function splitCsv(text: string, separator: string): string[][] {
  return text.split(/\r?\n/).map((line) => line.split(separator))
}

/** What a spreadsheet runs; some leave spaces at the beginning out. */
const formula = /^\s*[=+\-@\uff1d\uff0b\uff0d\uff20]/

function findFormulas(text: string): string[] {
  const rows = [',', ';', '\t', '|'].flatMap((separator) => [
    ...parseCsv(text, separator),
    ...(separator === ',' ? [] : splitCsv(text, separator)),
  ])
  return rows.flat().filter((cell) => formula.test(cell))
}

const nasty = fc.array(
  fc.constantFrom(...['=', '+', '-', '@', '\t', '\r', '\n', '"', ',', ';', '|', ' ', "'", 'a', '\u202e', '\0', '1']),
)

it('writes rows that any reader takes apart again, with everything in them visible', () => {
  fc.assert(
    fc.property(fc.array(nasty, { minLength: 1, maxLength: 5 }), (fields) => {
      const values = fields.map((field) => field.join(''))
      const [row = []] = parseCsv(toCsvRow(values))
      expect(row.map((field) => field.replaceAll("'", ''))).toEqual(
        values.map((value) => toVisible(value).replaceAll("'", '')),
      )
    }),
    { numRuns: 200 },
  )
})

it.each(['=1+1', '+1', '-1', '@SUM(A1)', '\t=1', '\r=1', '\n=1', '＝1'])(
  'writes %j as text that no spreadsheet runs',
  (value) => {
    expect(toCsvRow([value, 'x'])).toMatch(/^"?'/)
  },
)

it('writes no cell that begins a formula, whether a reader splits at commas, semicolons, tabs or bars', () => {
  fc.assert(
    fc.property(fc.array(fc.array(nasty, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 3 }), (rows) => {
      const text = rows.map((row) => toCsvRow(row.map((field) => field.join('')))).join('')
      expect(findFormulas(text)).toEqual([])
    }),
    { numRuns: 2000 },
  )
})

it.each([
  ['a;=cmd()', `"a;'=cmd()"`],
  ['a\t=cmd()', `"a\t'=cmd()"`],
  ['a;"=cmd()"', `"a;'""=cmd()"""`],
  ['a\n =cmd()', `"a\n' =cmd()"`],
  ['[1,-5]', '"[1,-5]"'],
  ['a;b', '"a;b"'],
  ['a\tb', '"a\tb"'],
])('writes %j as %s', (value, written) => {
  expect(toCsvRow([value])).toBe(`${written}\r\n`)
})

it('finds the formulas that quotation marks alone let through', () => {
  const quotedOnly = (value: string) => `2026-01-01,"${value.replaceAll('"', '""')}"\r\n`
  expect(findFormulas(quotedOnly('a;=cmd()'))).not.toEqual([])
  expect(findFormulas(quotedOnly('a;"=cmd()'))).not.toEqual([])
})

import fc from 'fast-check'
import { expect, it } from 'vitest'
import { toCsvRow } from '../../src/audit/export.ts'
import { toVisible } from '../../src/text/visible.ts'

/** What a reader of RFC 4180 makes of it. */
function parseCsv(text: string): string[][] {
  const rows: string[][] = []
  let [row, field, quoted] = [[] as string[], '', false]
  for (let at = 0; at < text.length; at++) {
    const character = text[at] ?? ''
    if (quoted) {
      if (character !== '"') field += character
      else if (text[at + 1] === '"') field += text[++at]
      else quoted = false
    } else if (character === '"') quoted = true
    else if (character === ',') [row, field] = [[...row, field], '']
    else if (text.startsWith('\r\n', at)) {
      rows.push([...row, field])
      ;[row, field] = [[], '']
      at++
    } else field += character
  }
  return rows
}

const nasty = fc.array(fc.constantFrom('=', '+', '-', '@', '\t', '\r', '\n', '"', ',', "'", 'a', '\u202e', '\0', '1'))

it('writes rows that any reader takes apart again, with everything in them visible', () => {
  fc.assert(
    fc.property(fc.array(nasty, { minLength: 1, maxLength: 5 }), (fields) => {
      const values = fields.map((field) => field.join(''))
      const [row = []] = parseCsv(toCsvRow(values))
      expect(row.map((field) => field.replace(/^'/, ''))).toEqual(
        values.map((value) => toVisible(value).replace(/^'/, '')),
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

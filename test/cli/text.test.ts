import { describe, expect, it } from 'vitest'
import { cut, displayWidth, renderTable } from '../../src/cli/table.ts'

type Row = { name: string; note: string }
const columns = [
  { title: 'name', value: (row: Row) => row.name },
  { title: 'note', value: (row: Row) => row.note, shrinks: true },
]

describe('tables for people', () => {
  it('aligns columns and leaves no space at the end of a line', () => {
    const text = renderTable(
      [
        { name: 'a', note: 'first' },
        { name: 'longer', note: '' },
      ],
      columns,
    )
    expect(text).toBe('NAME    NOTE\na       first\nlonger')
  })

  it('is cut to the width of the terminal, visibly', () => {
    const text = renderTable([{ name: 'files', note: 'a note that is much longer than the terminal' }], columns, 24)
    const lines = text.split('\n')
    expect(lines.every((line) => displayWidth(line) <= 24)).toBe(true)
    expect(lines[1]).toMatch(/…$/)
  })

  it('is not cut where there is no terminal', () => {
    const note = 'x'.repeat(500)
    expect(renderTable([{ name: 'a', note }], columns)).toContain(note)
  })

  it('shows what would move the cursor or turn the writing instead of doing it', () => {
    const text = renderTable([{ name: 'evil\x1b[2J', note: 'a\u202eb\nc' }], columns)
    expect(text).not.toContain('\x1b')
    expect(text).not.toContain('\u202e')
    expect(text).toContain('evil\\u{1b}[2J')
    expect(text.split('\n')).toHaveLength(2)
  })

  it('counts wide characters as two columns', () => {
    expect(displayWidth('日本')).toBe(4)
    expect(cut('日本語', 5)).toBe('日本…')
  })
})

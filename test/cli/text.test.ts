import { describe, expect, it } from 'vitest'
import { renderTable } from '../../src/cli/terminal/table.ts'
import { cut, displayWidth } from '../../src/cli/terminal/width.ts'

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

  it('leaves out the least important columns first, and never cuts a name', () => {
    const name = 'a_tool_with_quite_a_long_name_indeed'
    const rows = [{ name, note: 'why' }]
    const wide = [
      ...columns,
      { title: 'state', value: () => 'running', drops: 2 },
      { title: 'risk', value: () => 'write', drops: 1 },
    ]
    expect(renderTable(rows, wide, 80)).toContain('RISK')
    expect(renderTable(rows, wide, 56).split('\n')).toEqual([
      `NAME${' '.repeat(34)}NOTE  STATE`,
      `${name}  why   running`,
    ])
    expect(renderTable(rows, wide, 44)).toBe(`NAME${' '.repeat(34)}NOTE\n${name}  why`)
  })

  it('wraps a name that is wider than the terminal', () => {
    const text = renderTable([{ name: 'n'.repeat(50), note: 'why' }], columns, 40)
    expect(text.split('\n').every((line) => displayWidth(line) <= 40)).toBe(true)
    expect(text.match(/n/g)).toHaveLength(50)
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

import { toVisible } from '../../text/visible.ts'

export type Column<Row> = {
  readonly title: string
  value(row: Row): string
  /** Colours the finished cell; never changes what it says. */
  paint?(text: string, row: Row): string
  /** May be cut when the terminal is too narrow. */
  readonly shrinks?: boolean
}

const gap = '  '
const narrowest = 8

/** Aligned columns, cut to the width of the terminal; without one, nothing is cut. */
export function renderTable<Row>(rows: readonly Row[], columns: readonly Column<Row>[], width?: number): string {
  const cells = rows.map((row) => columns.map((column) => toCell(column.value(row))))
  const natural = columns.map((column, index) =>
    Math.max(displayWidth(column.title), ...cells.map((line) => displayWidth(line[index] ?? ''))),
  )
  const widths = fitWidths(natural, columns, width)
  const header = columns.map((column, index) => pad(column.title.toUpperCase(), widths[index] ?? 0)).join(gap)
  const lines = rows.map((row, line) => columns.map((column, index) => toPainted(row, line, column, index)).join(gap))
  return [header, ...lines].map((text) => text.trimEnd()).join('\n')

  function toPainted(row: Row, line: number, column: Column<Row>, index: number): string {
    const text = pad(cells[line]?.[index] ?? '', widths[index] ?? 0)
    return column.paint ? column.paint(text, row) : text
  }
}

/** Columns a text takes on a terminal: East Asian and emoji characters take two, combining ones none. */
export function displayWidth(text: string): number {
  let width = 0
  for (const character of text) {
    if (/\p{Mark}/u.test(character)) continue
    width += wide.test(character) ? 2 : 1
  }
  return width
}

export function cut(text: string, width: number): string {
  if (displayWidth(text) <= width) return text
  let kept = ''
  let used = 0
  for (const character of text) {
    used += displayWidth(character)
    if (used > width - 1) break
    kept += character
  }
  return `${kept}…`
}

const wide =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u

/** One line, with nothing in it that could move the cursor or turn the direction of writing. */
function toCell(text: string): string {
  return toVisible(text.replace(/[ \t\r\n]+/g, ' ')).trim()
}

/** Takes from the widest column that may shrink, one character at a time. */
function fitWidths<Row>(
  natural: readonly number[],
  columns: readonly Column<Row>[],
  width: number | undefined,
): number[] {
  const widths = [...natural]
  if (width === undefined) return widths
  const total = () => widths.reduce((sum, each) => sum + each, gap.length * (widths.length - 1))
  while (total() > width) {
    let widest = -1
    for (const [index, column] of columns.entries()) {
      if (!column.shrinks || (widths[index] ?? 0) <= narrowest) continue
      if (widest === -1 || (widths[index] ?? 0) > (widths[widest] ?? 0)) widest = index
    }
    if (widest === -1) return widths
    widths[widest] = (widths[widest] ?? 0) - 1
  }
  return widths
}

function pad(text: string, width: number): string {
  const short = cut(text, width)
  return short + ' '.repeat(Math.max(0, width - displayWidth(short)))
}

import { toVisible } from '../../shared/visible.ts'
import { cut, displayWidth, wrapWords } from './width.ts'

export type Column<Row> = {
  readonly title: string
  value(row: Row): string
  /** Adds colour to the cell; must not change its text. */
  paint?(text: string, row: Row): string
  /** May be cut when the terminal is too narrow. */
  readonly shrinks?: boolean
  /** Left out when the terminal is too narrow; the column with the lowest number first. */
  readonly drops?: number
}

const gap = '  '
const narrowest = 8
/** Other columns are left out before a column is cut to less than this. */
const useful = 20

/** Aligned columns that fit the terminal; without a width, every column is printed in full. */
export function renderTable<Row>(rows: readonly Row[], columns: readonly Column<Row>[], width?: number): string {
  const all = columns.map((column) => measure(column, rows))
  const shown = width === undefined ? all : fitColumns(all, width)
  const header = shown.map(({ column, width: own }) => pad(column.title.toUpperCase(), own)).join(gap)
  const lines = rows.flatMap((row, index) => renderRow(row, index, shown))
  return [header, ...lines].map((text) => text.trimEnd()).join('\n')
}

type Measured<Row> = { readonly column: Column<Row>; readonly cells: readonly string[]; readonly width: number }

function measure<Row>(column: Column<Row>, rows: readonly Row[]): Measured<Row> {
  const cells = rows.map((row) => toCell(column.value(row)))
  return { column, cells, width: Math.max(displayWidth(column.title), ...cells.map(displayWidth)) }
}

/** A cell that may not be cut continues on the next lines. */
function renderRow<Row>(row: Row, index: number, columns: readonly Measured<Row>[]): string[] {
  const cells = columns.map(({ column, cells, width }) => {
    const text = cells[index] ?? ''
    return column.shrinks ? [cut(text, width)] : wrapWords(text, width)
  })
  const height = Math.max(...cells.map((lines) => lines.length))
  return Array.from({ length: height }, (_, line) =>
    columns
      .map(({ column, width }, place) => {
        const text = pad(cells[place]?.[line] ?? '', width)
        return column.paint ? column.paint(text, row) : text
      })
      .join(gap),
  )
}

/** Leaves columns out, then narrows columns that may be cut, then the other columns, whose text is wrapped. */
function fitColumns<Row>(columns: readonly Measured<Row>[], width: number): Measured<Row>[] {
  const least = (all: readonly Measured<Row>[]) =>
    total(all.map(({ column, width: own }) => (column.shrinks ? Math.min(own, useful) : own)))
  let kept = [...columns]
  while (least(kept) > width) {
    const [next] = kept.filter(({ column }) => column.drops !== undefined).toSorted(byDrops)
    if (!next) break
    kept = kept.filter((each) => each !== next)
  }
  const cuttable = narrow(kept, width, ({ column }) => column.shrinks === true)
  return narrow(cuttable, width, () => true)
}

function byDrops<Row>(one: Measured<Row>, other: Measured<Row>): number {
  return (one.column.drops ?? 0) - (other.column.drops ?? 0)
}

/** Narrows the widest column by one character at a time. */
function narrow<Row>(columns: readonly Measured<Row>[], width: number, may: (column: Measured<Row>) => boolean) {
  const narrowed = columns.map((each) => ({ ...each }))
  while (total(narrowed.map((each) => each.width)) > width) {
    const candidates = narrowed.filter((each) => may(each) && each.width > narrowest)
    const widest = candidates.reduce(
      (found, each) => (found && found.width >= each.width ? found : each),
      candidates[0],
    )
    if (!widest) break
    widest.width -= 1
  }
  return narrowed
}

function total(widths: readonly number[]): number {
  return widths.reduce((sum, each) => sum + each, gap.length * (widths.length - 1))
}

/** One line without characters that move the cursor or change the text direction. */
function toCell(text: string): string {
  return toVisible(text.replace(/[ \t\r\n]+/g, ' ')).trim()
}

function pad(text: string, width: number): string {
  const short = cut(text, width)
  return short + ' '.repeat(Math.max(0, width - displayWidth(short)))
}

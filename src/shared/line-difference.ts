export type DifferenceLine = { readonly kind: 'same' | 'added' | 'removed'; readonly line: string }

/**
 * The comparison takes time and memory for each pair of lines. Longer texts are shown as removed lines, then added
 * lines.
 */
const mostPairs = 4_000_000

/** Lines of the longest common subsequence are `same`. All other lines are `removed` or `added`. */
export function diffLines(before: readonly string[], after: readonly string[]): DifferenceLine[] {
  let head = 0
  while (head < before.length && head < after.length && before[head] === after[head]) head++
  let tail = 0
  while (
    tail < before.length - head &&
    tail < after.length - head &&
    before[before.length - 1 - tail] === after[after.length - 1 - tail]
  )
    tail++
  return [
    ...before.slice(0, head).map(same),
    ...diffMiddle(before.slice(head, before.length - tail), after.slice(head, after.length - tail)),
    ...before.slice(before.length - tail).map(same),
  ]
}

function diffMiddle(old: readonly string[], fresh: readonly string[]): DifferenceLine[] {
  if (old.length * fresh.length > mostPairs) return [...old.map(removed), ...fresh.map(added)]
  const width = fresh.length + 1
  /**
   * The number of common lines after each pair of positions. At most 2000, because of `mostPairs`, so 16 bits are
   * enough.
   */
  const common = new Uint16Array((old.length + 1) * width)
  const at = (row: number, column: number) => common[row * width + column] ?? 0
  for (let row = old.length - 1; row >= 0; row--) {
    for (let column = fresh.length - 1; column >= 0; column--) {
      common[row * width + column] =
        old[row] === fresh[column] ? at(row + 1, column + 1) + 1 : Math.max(at(row + 1, column), at(row, column + 1))
    }
  }
  const lines: DifferenceLine[] = []
  let row = 0
  let column = 0
  while (row < old.length || column < fresh.length) {
    if (row < old.length && column < fresh.length && old[row] === fresh[column]) {
      lines.push(same(old[row] ?? ''))
      row++
      column++
    } else if (column >= fresh.length || (row < old.length && at(row + 1, column) >= at(row, column + 1))) {
      lines.push(removed(old[row++] ?? ''))
    } else {
      lines.push(added(fresh[column++] ?? ''))
    }
  }
  return lines
}

function same(line: string): DifferenceLine {
  return { kind: 'same', line }
}

function removed(line: string): DifferenceLine {
  return { kind: 'removed', line }
}

function added(line: string): DifferenceLine {
  return { kind: 'added', line }
}

const marks = { same: ' ', added: '+', removed: '-' } as const
/** Unchanged lines that are shown before the first change and after the last change. */
const contextLines = 2

/** The changed lines, marked with + and -, with a few unchanged lines around them. */
export function toChangedLines(before: readonly string[], after: readonly string[]): string[] {
  const lines = diffLines(before, after)
  const isChanged = ({ kind }: DifferenceLine) => kind !== 'same'
  const first = lines.findIndex(isChanged)
  if (first === -1) return lines.slice(-contextLines).map(toMarked)
  const last = lines.findLastIndex(isChanged)
  return lines.slice(Math.max(0, first - contextLines), last + 1 + contextLines).map(toMarked)
}

function toMarked({ kind, line }: DifferenceLine): string {
  return `  ${marks[kind]} ${line}`
}

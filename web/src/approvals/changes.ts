export type ChangedLine = { readonly kind: 'same' | 'added' | 'removed'; readonly line: string }

/** More lines than this are shown one after the other: comparing takes the product of both. */
const mostCells = 1_000_000

/** Line by line, by the longest part that both have in common. */
export function toChanges(before: string, after: string): ChangedLine[] {
  const old = before.split('\n')
  const fresh = after.split('\n')
  if (old.length * fresh.length > mostCells) return [...old.map(removed), ...fresh.map(added)]
  const width = fresh.length + 1
  const common = new Uint32Array((old.length + 1) * width)
  const at = (row: number, column: number) => common[row * width + column] ?? 0
  for (let row = old.length - 1; row >= 0; row--) {
    for (let column = fresh.length - 1; column >= 0; column--) {
      common[row * width + column] =
        old[row] === fresh[column] ? at(row + 1, column + 1) + 1 : Math.max(at(row + 1, column), at(row, column + 1))
    }
  }
  const lines: ChangedLine[] = []
  let row = 0
  let column = 0
  while (row < old.length || column < fresh.length) {
    if (row < old.length && column < fresh.length && old[row] === fresh[column]) {
      lines.push({ kind: 'same', line: old[row] ?? '' })
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

function removed(line: string): ChangedLine {
  return { kind: 'removed', line }
}

function added(line: string): ChangedLine {
  return { kind: 'added', line }
}

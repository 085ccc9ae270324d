/** A Markdown table with padded columns, so that it is readable in a terminal. */
export function toTable(titles: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = titles.map((title, index) =>
    Math.max(3, title.length, ...rows.map((row) => (row[index] ?? '').length)),
  )
  const toLine = (cells: readonly string[]) =>
    `| ${widths.map((width, index) => (cells[index] ?? '').padEnd(width)).join(' | ')} |`
  return [toLine(titles), toLine(widths.map((width) => '-'.repeat(width))), ...rows.map(toLine)].join('\n')
}

/** More lines than this are shown as a whole on both sides. */
const mostLines = 2000

/** The longest common lines stay, the others went or came. What is equal at both ends is not looked at twice. */
export function diffLines(before: readonly string[], after: readonly string[]): string[] {
  if (before.length > mostLines || after.length > mostLines) return [...marked('-', before), ...marked('+', after)]
  let head = 0
  while (head < before.length && head < after.length && before[head] === after[head]) head++
  let tail = 0
  while (
    tail < before.length - head &&
    tail < after.length - head &&
    before[before.length - 1 - tail] === after[after.length - 1 - tail]
  )
    tail++
  const old = before.slice(head, before.length - tail)
  const now = after.slice(head, after.length - tail)
  const context = (lines: readonly string[]) => marked(' ', lines)
  return [
    ...context(before.slice(Math.max(0, head - 2), head)),
    ...middle(old, now),
    ...context(before.slice(before.length - tail, before.length - tail + 2)),
  ]
}

function middle(old: readonly string[], now: readonly string[]): string[] {
  const width = now.length + 1
  const common = new Uint16Array((old.length + 1) * width)
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = now.length - 1; j >= 0; j--) {
      const at = i * width + j
      const skipped = Math.max(common[at + width] ?? 0, common[at + 1] ?? 0)
      common[at] = old[i] === now[j] ? (common[at + width + 1] ?? 0) + 1 : skipped
    }
  }
  const lines: string[] = []
  let i = 0
  let j = 0
  while (i < old.length || j < now.length) {
    const at = i * width + j
    if (i < old.length && j < now.length && old[i] === now[j]) {
      lines.push(`    ${old[i++]}`)
      j++
    } else if (i < old.length && (j >= now.length || (common[at + width] ?? 0) >= (common[at + 1] ?? 0))) {
      lines.push(`  - ${old[i++]}`)
    } else {
      lines.push(`  + ${now[j++]}`)
    }
  }
  return lines
}

function marked(mark: string, lines: readonly string[]): string[] {
  return lines.map((line) => `  ${mark} ${line}`)
}

import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { root } from '../lib/folders.ts'
import type { Results } from '../results.ts'
import { toTable } from './table.ts'
import { inOrder, toRatio, toReport } from './text.ts'

const [open, close] = ['<!-- bench -->', '<!-- /bench -->']

export async function writeDocs(results: Results): Promise<void> {
  await fill(join(root, 'docs', 'performance.md'), toReport(results))
  await fill(join(root, 'README.md'), toSummary(results))
}

/** Replaces the text between the two marks; a page without the marks is not changed. */
async function fill(file: string, text: string): Promise<void> {
  const page = await readFile(file, 'utf8')
  const filled = fillMarks(page, text)
  if (filled !== page) await writeFile(file, filled)
}

export function fillMarks(page: string, text: string): string {
  const [from, to] = [page.indexOf(open), page.indexOf(close)]
  if (from === -1 || to < from) return page
  return `${page.slice(0, from + open.length)}\n\n${text}\n\n${page.slice(to)}`
}

const shown: Readonly<Record<string, string>> = {
  'json-read-100B-16': 'reading, HTTP, 100 B',
  'json-read-10kB-16': 'reading, HTTP, 10 kB',
  'json-read-1MB-16': 'reading, HTTP, 1 MB',
  'sse-read-100B-16': 'reading, HTTP answering in SSE, 100 B',
  'json-write-100B-64': 'writing, HTTP, 100 B, 64 in flight',
  'stdio-read-100B-16': 'reading, stdio, 100 B',
}

/** CPU per call as a multiple of the plain proxy, for the most important cells. */
export function toSummary({ cells }: Results): string {
  const rows = cells.filter(({ cell }) => cell.name in shown)
  const names = new Set(
    rows.flatMap(({ targets, yardstick }) => Object.keys(targets).filter((name) => name !== yardstick)),
  )
  const columns = inOrder([...names]).filter((name) => name !== 'direct' && !name.startsWith('raw-'))
  return toTable(
    ['CPU per call, relative to a plain byte-forwarding proxy', ...columns],
    rows.map(({ cell, targets }) => [
      shown[cell.name] ?? cell.name,
      ...columns.map((name) => {
        const cpu = targets[name]?.toYardstick.cpu
        return cpu ? toRatio(cpu) : '-'
      }),
    ]),
  )
}

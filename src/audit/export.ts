import type { ChainMark } from '../contract/audit.ts'
import { toIso } from '../lib/clock.ts'
import { matchesGlob } from '../lib/glob.ts'
import { toVisible } from '../shared/visible.ts'
import type { AuditTable } from '../storage/database.ts'
import type { AuditFilter } from '../storage/tables/audit.ts'
import type { RecordStore } from '../storage/tables/record.ts'
import { readCheckpoints } from './checkpoints.ts'
import { createDatabaseSource, pagesOf } from './database-source.ts'
import { createFindings } from './findings.ts'
import { toLine } from './lines.ts'

export type ExportQuery = Pick<AuditFilter, 'since' | 'until' | 'principal' | 'subject' | 'kind' | 'call'> & {
  readonly format: 'jsonl' | 'csv'
}

/** Exports chain by chain, so that a reader can verify each chain, and in pieces, to limit memory. */
export async function* exportRecord(
  record: RecordStore,
  query: ExportQuery,
  signal: AbortSignal,
): AsyncGenerator<string> {
  const source = createDatabaseSource(record, async () => undefined)
  const { removed } = await readCheckpoints(source, createFindings())
  if (query.format === 'csv') yield toCsvRow(columns)
  for (let chain = await record.nextChain(''); chain !== undefined; chain = await record.nextChain(chain)) {
    const after = query.since === undefined ? 0 : (await record.firstSince(chain, query.since)) - 1
    const before = query.until === undefined ? Number.POSITIVE_INFINITY : await record.firstSince(chain, query.until)
    const marks = removed.get(chain) ?? []
    let last: ChainMark | undefined = await findMark(record, chain, after)
    for await (const page of pagesOf(record, { instance: chain, after, before })) {
      signal.throwIfAborted()
      let text = ''
      for (const row of page) {
        if (fits(row, query))
          text += query.format === 'csv' ? toCsvLine(row) : toLine(row, findPrevious(row, last, marks))
        last = row
      }
      if (text !== '') yield text
    }
  }
}

async function findMark(record: RecordStore, instance: string, sequence: number): Promise<ChainMark | undefined> {
  const [row] = sequence > 0 ? await record.entries(instance, sequence - 1, 1) : []
  return row
}

/** The hash of the entry before: from that entry, or from a checkpoint if the entry was removed. */
function findPrevious(row: ChainMark, last: ChainMark | undefined, marks: readonly ChainMark[]): string | null {
  if (row.sequence === 1) return ''
  return [...(last ? [last] : []), ...marks].find(({ sequence }) => sequence === row.sequence - 1)?.hash ?? null
}

function fits(row: AuditTable, { principal, subject, kind, call }: ExportQuery): boolean {
  if (principal !== undefined && row.principal !== principal) return false
  if (kind !== undefined && row.kind !== kind) return false
  if (call !== undefined && row.call !== call) return false
  return subject === undefined || matchesGlob(subject, row.subject)
}

const columns = ['at', 'kind', 'principal', 'subject', 'call', 'body', 'instance', 'sequence', 'hash']

function toCsvLine(row: AuditTable): string {
  const { at, kind, principal, subject, call, body, instance, sequence, hash } = row
  return toCsvRow([toIso(at), kind, principal, subject, call ?? '', body, instance, String(sequence), hash])
}

export function toCsvRow(values: readonly string[]): string {
  return `${values.map(toCsvField).join(',')}\r\n`
}

/**
 * Positions where a spreadsheet could see the beginning of a formula: at the start of a value, and after a character
 * that starts a new cell or row in a spreadsheet with other settings, quoted or not. Spaces and quotation marks before
 * the formula are ignored. Commas are not included: a reader that splits at commas respects the quotation marks.
 */
const formulas =
  /(?:^(?=[\s"]*[=+\-@\uff1d\uff0b\uff0d\uff20])|(?<=[;\t|\r\n])(?=(?:"|[^\S\t\r\n])*[=+\-@\uff1d\uff0b\uff0d\uff20]))/g

/** A spreadsheet shows a formula with an apostrophe before it as text. */
function toCsvField(value: string): string {
  const safe = toVisible(value.replace(formulas, "'"))
  return /[",;\t|\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

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

/** Chain by chain, so that whoever reads it can follow each; in pieces, so that nobody holds it all. */
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

/** The hash that an entry builds on: of the one before it, or of the one that a checkpoint names in its place. */
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
 * Where a spreadsheet could find the beginning of a formula: at the start of a value, and behind a character at which a
 * spreadsheet with other settings begins a new cell or row, quoted or not. Spaces and quotation marks in between do not
 * help. Commas are not among them: a reader that splits at commas respects the quotation marks.
 */
const formulas =
  /(?:^(?=[\s"]*[=+\-@\uff1d\uff0b\uff0d\uff20])|(?<=[;\t|\r\n])(?=(?:"|[^\S\t\r\n])*[=+\-@\uff1d\uff0b\uff0d\uff20]))/g

/** An apostrophe makes text of a formula. */
function toCsvField(value: string): string {
  const safe = toVisible(value.replace(formulas, "'"))
  return /[",;\t|\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

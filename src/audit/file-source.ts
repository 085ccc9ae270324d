import { basename } from 'node:path'
import type { ExportedEntry } from '../contract/audit.ts'
import { GatewayError } from '../contract/errors.ts'
import type { AuditTable } from '../storage/database.ts'
import { readLines } from './lines.ts'
import type { RecordSource } from './verify.ts'

const pageRows = 500

/** Reads the audit of an export. The file is read several times: for its time span, checkpoints, anchors and entries. */
export function createFileSource(file: string): RecordSource {
  return {
    name: `the export ${basename(file)}`,
    marks: (kind) => marksOf(file, kind),
    pages: () => pagesOf(file),
    async openInstances() {
      // An export does not say which calls were running when it was made.
      const instances = new Set<string>()
      for await (const { instance } of entriesOf(file)) instances.add(instance)
      return instances
    },
    async span() {
      const span = { oldest: Number.POSITIVE_INFINITY, newest: 0 }
      for await (const { at } of entriesOf(file)) {
        span.oldest = Math.min(span.oldest, at)
        span.newest = Math.max(span.newest, at)
      }
      return span
    },
  }
}

async function* marksOf(file: string, kind: 'anchor' | 'checkpoint'): AsyncGenerator<AuditTable> {
  for await (const entry of entriesOf(file)) if (entry.kind === kind) yield entry
}

async function* pagesOf(file: string): AsyncGenerator<ExportedEntry[]> {
  let page: ExportedEntry[] = []
  for await (const entry of entriesOf(file)) {
    page.push(entry)
    if (page.length < pageRows) continue
    yield page
    page = []
  }
  if (page.length > 0) yield page
}

async function* entriesOf(file: string): AsyncGenerator<ExportedEntry> {
  let line = 0
  for await (const entry of readLines(file)) {
    line++
    if (!entry)
      throw new GatewayError('request-invalid', `Line ${line} of ${file} is not an entry of a JSON Lines export`)
    yield entry
  }
}

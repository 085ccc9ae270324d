import type { AuditTable } from '../storage/database.ts'
import { beforeAllMarks, type RecordStore } from '../storage/tables/record.ts'
import type { RecordSource } from './verify.ts'

const pageRows = 500
const pageCalls = 1000

/** Reads the audit of a database in pages, so that other queries can run in between. */
export function createDatabaseSource(record: RecordStore, restored: () => Promise<string | undefined>): RecordSource {
  return {
    name: 'the database',
    marks: (kind) => marksOf(record, kind),
    pages: () => entriesOf(record),
    openInstances: async () => new Set(await record.openInstances()),
    unrecordedCalls: () => unrecordedOf(record),
    restored,
  }
}

async function* marksOf(record: RecordStore, kind: 'anchor' | 'checkpoint'): AsyncGenerator<AuditTable> {
  let place = beforeAllMarks
  while (true) {
    const rows = await record.marks(kind, place, pageRows)
    yield* rows
    const last = rows.at(-1)
    if (!last || rows.length < pageRows) return
    place = last
  }
}

async function* entriesOf(record: RecordStore): AsyncGenerator<AuditTable[]> {
  let instance = await record.nextChain('')
  while (instance !== undefined) {
    yield* pagesOf(record, { instance, after: 0, before: Number.POSITIVE_INFINITY })
    instance = await record.nextChain(instance)
  }
}

/** The entries of one chain between two sequence numbers. */
export async function* pagesOf(
  record: RecordStore,
  { instance, after, before }: { instance: string; after: number; before: number },
): AsyncGenerator<AuditTable[]> {
  let place = after
  while (true) {
    const rows = await record.entries(instance, place, pageRows)
    const wanted = rows.filter(({ sequence }) => sequence < before)
    if (wanted.length > 0) yield wanted
    const last = rows.at(-1)
    if (!last || wanted.length < pageRows) return
    place = last.sequence
  }
}

async function* unrecordedOf(record: RecordStore): AsyncGenerator<string> {
  let after = ''
  while (true) {
    const rows = await record.calls(after, pageCalls)
    for (const { id, recorded } of rows) if (!recorded) yield id
    const last = rows.at(-1)
    if (!last || rows.length < pageCalls) return
    after = last.id
  }
}

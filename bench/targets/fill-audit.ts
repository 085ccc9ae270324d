import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import type { Way } from '../load/protocol.ts'
import { runSlice } from '../load/slice.ts'

/** Fills the audit: makes some real calls, stops the gateway, and copies their rows many times. */
export async function fillAudit(parts: {
  way: Way
  tool: string
  data: string
  entries: number
  stop(): Promise<void>
}): Promise<void> {
  const asking = { kind: 'call' as const, tools: [parts.tool], bytes: 100 }
  await runSlice({ kind: 'slice', way: parts.way, asking, inFlight: 4, warmUpMs: 0, measureMs: 300 })
  await parts.stop()
  const database = new Sqlite(join(parts.data, 'sallyport.db'))
  try {
    database.pragma('synchronous = OFF')
    const present = Number(database.prepare('select count(*) from audit').pluck().get())
    const copies = Math.ceil(parts.entries / present)
    copyRows(database, copies, { table: 'calls', shifted: { id: "id || '-' || copy.number" } })
    copyRows(database, copies, {
      table: 'audit',
      shifted: { sequence: `sequence + copy.number * ${present + 1000}`, call: "call || '-' || copy.number" },
    })
    database.exec('analyze')
  } finally {
    database.close()
  }
}

type Copying = { readonly table: string; readonly shifted: Readonly<Record<string, string>> }

/** Copies all columns of a table; `shifted` lists the columns that must differ. */
function copyRows(database: Sqlite.Database, copies: number, { table, shifted }: Copying): void {
  const columns = database.prepare(`select name from pragma_table_info('${table}')`).pluck().all().map(String)
  const values = columns.map((column) => shifted[column] ?? column)
  database.exec(`
    with recursive copy (number) as (select 1 union all select number + 1 from copy where number < ${copies})
    insert into ${table} (${columns.join(', ')}) select ${values.join(', ')} from ${table}, copy`)
}

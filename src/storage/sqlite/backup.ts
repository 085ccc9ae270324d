import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { GatewayError } from '../../contract/errors.ts'
import { linkFile } from '../../lib/durable-file.ts'
import type { BackupRow, BackupSource, BackupTarget } from '../backup.ts'
import { migrations } from '../migrations.ts'
import { type Connection, lockFolder, migrate, openPrivate, stepwiseMode } from './file.ts'

const rowsAtOnce = 500

/**
 * Reads the file while the gateway has it open; a transaction gives a consistent snapshot. Use it only in a separate
 * process: in the gateway's own process, closing the file would drop the gateway's locks.
 */
export function openSqliteSource(folder: string): BackupSource {
  const connection = openExisting(folder)
  connection.pragma('query_only = on')
  connection.exec('begin')
  const applied = connection.prepare<[], number>('select id from migrations order by id').pluck().all()
  return {
    kind: 'sqlite',
    applied,
    columns: async (table) => connection.prepare<[string], string>(columnsOf).pluck().all(table),
    async *pages(table, columns) {
      let page: BackupRow[] = []
      const select = connection.prepare<[], BackupRow>(`select ${columns.map(quote).join(', ')} from ${table}`)
      for (const row of select.raw().iterate()) {
        page.push(row)
        if (page.length < rowsAtOnce) continue
        yield page
        page = []
      }
      yield page
    },
    close: async () => void connection.close(),
  }
}

const columnsOf = 'select name from pragma_table_info(?) order by cid'

function openExisting(folder: string): Connection {
  try {
    return new Sqlite(join(folder, 'sallyport.db'), { fileMustExist: true, timeout: 5000 })
  } catch (error) {
    throw new GatewayError('backup-failed', `There is no Sallyport data in ${folder}`, { folder }, { cause: error })
  }
}

/** Writes to a temporary file, which gets its final name at the end. */
export function openSqliteTarget(folder: string, now: number): BackupTarget {
  const path = join(folder, 'sallyport.db')
  const unlock = lockFolder(folder)
  if (existsSync(path)) {
    unlock()
    throw new GatewayError('data-not-empty', `${folder} already contains data`, {
      folder,
    })
  }
  const draft = `${path}.${process.pid}.restoring`
  const connection = openPrivate(draft, 0)
  connection.pragma(stepwiseMode)
  connection.pragma('journal_mode = delete')
  connection.pragma('synchronous = full')

  async function leave(): Promise<void> {
    connection.close()
    await rm(draft, { force: true })
    unlock()
  }

  return {
    async prepare(applied) {
      migrate(
        connection,
        now,
        migrations.filter(({ id }) => applied.includes(id)),
      )
      connection.exec('begin')
    },
    async insert(table, columns, rows) {
      const names = columns.map(quote).join(', ')
      const places = columns.map(() => '?').join(', ')
      const insert = connection.prepare<unknown[]>(`insert into ${table} (${names}) values (${places})`)
      for (const row of rows) insert.run(...row)
    },
    async finish() {
      connection.exec('commit')
      connection.close()
      await linkFile(draft, path)
      await leave()
    },
    abandon: leave,
  }
}

function quote(name: string): string {
  return `"${name}"`
}

import type { Client } from 'pg'
import { GatewayError } from '../../contract/errors.ts'
import type { BackupRow, BackupSource, BackupTarget } from '../backup.ts'
import { migrations } from '../migrations.ts'
import { connectPostgres, describeDatabaseUrl, toUnavailable } from './connection.ts'
import { applyMigrations } from './migrate.ts'

const rowsAtOnce = 500
/** PostgreSQL allows at most 65,535 parameters per statement. */
const mostParameters = 60_000

/** Reads everything in one transaction, which sees the database at one point in time. */
export async function openPostgresSource(url: string): Promise<BackupSource> {
  const { client, close } = await connectPostgres({ url, name: 'sallyport backup', timeoutMs: 600_000 }, false)
  try {
    await client.query('begin isolation level repeatable read read only')
    const applied = await client.query<{ id: number }>('select id from migrations order by id')
    return {
      kind: 'postgresql',
      applied: applied.rows.map(({ id }) => id),
      async columns(table) {
        const columns = await client.query<{ name: string }>(columnsOf, [table])
        return columns.rows.map(({ name }) => name)
      },
      pages: (table, columns) => readPages(client, table, columns),
      close,
    }
  } catch (error) {
    await close()
    if (isMissingTable(error))
      throw new GatewayError('backup-failed', `There is no Sallyport data in ${describeDatabaseUrl(url)}`)
    throw toUnavailable('The database cannot be read', error, url)
  }
}

const columnsOf = `select column_name as name from information_schema.columns
  where table_schema = current_schema() and table_name = $1 order by ordinal_position`

async function* readPages(client: Client, table: string, columns: readonly string[]): AsyncIterable<BackupRow[]> {
  await client.query(`declare backup cursor for select ${columns.map(quote).join(', ')} from ${table}`)
  while (true) {
    const page = await client.query<(string | number | null)[]>({
      text: `fetch ${rowsAtOnce} from backup`,
      rowMode: 'array',
    })
    if (page.rows.length === 0) break
    yield page.rows
  }
  await client.query('close backup')
}

/** Creates tables and rows in one transaction, so that a failed restore leaves nothing. */
export async function openPostgresTarget(url: string, now: number): Promise<BackupTarget> {
  const { client, close } = await connectPostgres({ url, name: 'sallyport restore', timeoutMs: 600_000 }, false)

  async function abandon(): Promise<void> {
    await client.query('rollback').catch(() => {})
    await close()
  }

  return {
    async prepare(applied) {
      await client.query('begin')
      const tables = await client.query<{ count: number }>(countTables)
      if (tables.rows[0]?.count !== 0) {
        throw new GatewayError('data-not-empty', `The database ${describeDatabaseUrl(url)} already contains tables`)
      }
      await applyMigrations(
        client,
        now,
        migrations.filter(({ id }) => applied.includes(id)),
      )
    },
    async insert(table, columns, rows) {
      const most = Math.floor(mostParameters / columns.length)
      for (let from = 0; from < rows.length; from += most)
        await insertSome(table, columns, rows.slice(from, from + most))
    },
    async finish() {
      await client.query('commit')
      await close()
    },
    abandon,
  }

  async function insertSome(table: string, columns: readonly string[], rows: readonly BackupRow[]): Promise<void> {
    let place = 0
    const places = rows.map((row) => `(${row.map(() => `$${++place}`).join(', ')})`).join(', ')
    const text = `insert into ${table} (${columns.map(quote).join(', ')}) values ${places}`
    await client.query(text, rows.flat().map(toStorable))
  }
}

const countTables = 'select count(*) as count from information_schema.tables where table_schema = current_schema()'

/** PostgreSQL cannot store a NUL character in text. SQLite can. */
function toStorable(value: string | number | null): string | number | null {
  return typeof value === 'string' ? value.replaceAll('\0', '\u{FFFD}') : value
}

function isMissingTable(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === '42P01'
}

function quote(name: string): string {
  return `"${name}"`
}

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { GatewayError } from '../../contract/errors.ts'
import { createSqliteDatabase } from '../dialect.ts'
import { createRecordStore, type RecordStore } from '../tables/record.ts'

/** The audit of a data folder that no gateway has open. Read-only; nothing is migrated. */
export type OfflineRecord = {
  readonly record: RecordStore
  remembered(key: string): Promise<string | undefined>
  close(): void
}

export function openOfflineRecord(folder: string): OfflineRecord {
  const path = join(folder, 'sallyport.db')
  if (!existsSync(path)) throw new GatewayError('not-found', `There is no audit in ${folder}`)
  const connection = new Sqlite(path, { readonly: true, timeout: 5000 })
  const columns = connection.prepare<[], { name: string }>("select name from pragma_table_info('audit')").all()
  if (!columns.some(({ name }) => name === 'hash')) {
    connection.close()
    throw new GatewayError(
      'storage-unavailable',
      `The audit in ${folder} was written by an old version without a chain. Start a gateway once to migrate it`,
    )
  }
  const database = createSqliteDatabase({
    query: async ({ sql, parameters }) => connection.prepare<unknown[]>(sql).all(...parameters),
    commit: async () => ({ kind: 'refused', step: 0, by: 'error', reason: 'The database is open for reading only' }),
  })
  return {
    record: createRecordStore(database),
    async remembered(key) {
      const row = await database.selectFrom('memory').select('value').where('key', '=', key).executeTakeFirst()
      return row?.value
    },
    close: () => connection.close(),
  }
}

import type { Client } from 'pg'
import { type Migration, migrations, migrationsTable, toPending } from '../migrations.ts'
import { migrationsLock } from './connection.ts'

/** Migrates in one transaction under a lock: if several gateways start at once, one migrates and the others wait for it. */
export async function migratePostgres(
  client: Client,
  now: number,
  known: readonly Migration[] = migrations,
): Promise<void> {
  await client.query('begin')
  try {
    await applyMigrations(client, now, known)
    await client.query('commit')
  } catch (error) {
    await client.query('rollback').catch(() => {})
    throw error
  }
}

/** Must run inside a transaction of the caller. */
export async function applyMigrations(client: Client, now: number, known: readonly Migration[]): Promise<void> {
  await client.query(`select pg_advisory_xact_lock(${migrationsLock})`)
  await client.query(migrationsTable)
  const applied = await client.query<{ id: number }>('select id from migrations')
  const pending = toPending(
    applied.rows.map(({ id }) => id),
    known,
  )
  for (const { id, name, statements } of pending) {
    for (const statement of statements) await client.query(toPostgres(statement))
    await client.query('insert into migrations (id, name, applied_at) values ($1, $2, $3)', [id, name, now])
  }
}

/** Text is compared byte by byte, as in SQLite, so that lists have the same order in both databases. */
function toPostgres(statement: string): string {
  return statement.replace(/\s*without rowid\s*$/, '').replace(/\b(\w+) text\b/g, '$1 text collate "C"')
}

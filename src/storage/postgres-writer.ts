import type { Client } from 'pg'
import { type EntryPosition, entryColumns } from './entries.ts'
import { connectPostgres, endEarlier, type PostgresAddress, writerLock } from './postgres-connection.ts'

/** The one connection by which an instance writes. */
export type WriterLink = {
  readonly client: Client
  /** The last batch and the last entry of this instance that are in the database. */
  readonly batch: number
  readonly last: EntryPosition | undefined
  /** Resolves when the connection is gone. */
  readonly lost: Promise<void>
  close(): Promise<void>
}

const fenceMs = 3000

/**
 * Before anything is read, whatever an earlier connection of this instance had under way is over: its end is asked for,
 * and the lock that it held proves it. Only then can nothing of it become true later.
 */
export async function openWriterLink(address: PostgresAddress, instance: string): Promise<WriterLink> {
  const client = await connectPostgres(address, true)
  const lost = Promise.withResolvers<void>()
  client.once('end', () => lost.resolve())
  try {
    await client.query(`set lock_timeout = ${fenceMs}`)
    await endEarlier(client, address.name)
    await client.query(`select pg_advisory_lock(${writerLock('$1::text')})`, [instance])
    await client.query('set lock_timeout = 0')
    // Whatever the server's own setting is: a commit that was answered is on the disk.
    await client.query(
      "select set_config('synchronous_commit', 'on', false) where current_setting('synchronous_commit') in ('off', 'local')",
    )
    const { batch = 0 } = (await client.query<Reached>(reached, [instance])).rows[0] ?? {}
    const [last] = (await client.query<EntryPosition>(lastEntry, [instance])).rows
    return { client, batch, last, lost: lost.promise, close: () => client.end() }
  } catch (error) {
    await client.end().catch(() => {})
    throw error
  }
}

type Reached = { batch: number }

const reached = 'select number as batch from batches where instance = $1'

const lastEntry = 'select sequence, hash from audit where instance = $1 order by sequence desc limit 1'

export const markBatch =
  'insert into batches (instance, number) values ($1, $2) on conflict (instance) do update set number = excluded.number'

const places = entryColumns.map((_, index) => `$${index + 1}`).join(', ')
export const insertEntry = `insert into audit (${entryColumns.join(', ')}) values (${places})`

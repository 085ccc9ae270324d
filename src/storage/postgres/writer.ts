import { type EntryPosition, entryColumns } from '../entries.ts'
import {
  connectPostgres,
  endEarlier,
  type PostgresAddress,
  type PostgresLink,
  withDeadline,
  writerLock,
} from './connection.ts'

/** The only connection that writes for an instance. */
export type WriterLink = PostgresLink & {
  /** The last batch and the last entry of this instance in the database. */
  readonly batch: number
  readonly last: EntryPosition | undefined
}

const fenceMs = 3000

/**
 * Ends an earlier connection of this instance and takes its lock before anything is read. With the lock, no commit of
 * the earlier connection can succeed later.
 */
export async function openWriterLink(
  address: PostgresAddress,
  instance: string,
  deadlineMs: number,
): Promise<WriterLink> {
  const link = await connectPostgres({ ...address, connectMs: deadlineMs }, true)
  try {
    return { ...link, ...(await withDeadline(link, deadlineMs, takeOver(link, address, instance))) }
  } catch (error) {
    link.cut()
    throw error
  }
}

async function takeOver({ client }: PostgresLink, address: PostgresAddress, instance: string) {
  await client.query(`set lock_timeout = ${fenceMs}`)
  await endEarlier(client, address.name)
  await client.query(`select pg_advisory_lock(${writerLock('$1::text')})`, [instance])
  await client.query('set lock_timeout = 0')
  // Whatever the server's own setting is: a confirmed commit must be on disk.
  await client.query(
    "select set_config('synchronous_commit', 'on', false) where current_setting('synchronous_commit') in ('off', 'local')",
  )
  const { batch = 0 } = (await client.query<Reached>(reached, [instance])).rows[0] ?? {}
  const [last] = (await client.query<EntryPosition>(lastEntry, [instance])).rows
  return { batch, last }
}

type Reached = { batch: number }

const reached = 'select number as batch from batches where instance = $1'

const lastEntry = 'select sequence, hash from audit where instance = $1 order by sequence desc limit 1'

export const markBatch =
  'insert into batches (instance, number) values ($1, $2) on conflict (instance) do update set number = excluded.number'

const places = entryColumns.map((_, index) => `$${index + 1}`).join(', ')
export const insertEntry = `insert into audit (${entryColumns.join(', ')}) values (${places})`

import { GatewayError } from '../../contract/errors.ts'
import { type Clock, sleep } from '../../lib/clock.ts'
import { createEntryNumbers, type EntryNumbers } from '../entries.ts'
import type { Engine, Unit, UnitOutcome } from '../unit.ts'
import { codeOf, createPostgresBatches, isCollision, type PostgresBatches } from './batch.ts'
import { connectPostgres, createReaders, type PostgresAddress, toUnavailable, unlessSilent } from './connection.ts'
import { migratePostgres } from './migrate.ts'
import { openWriterLink, type WriterLink } from './writer.ts'

export type PostgresSettings = {
  readonly url: string
  /** The instance whose entries this engine numbers. */
  readonly instance: string
  /** The key that chains the entries. */
  readonly auditKey: Uint8Array
  readonly clock: Clock
}

/** The state of one writing connection. A new connection gets a new state. */
type Writing = { readonly link: WriterLink; readonly entries: EntryNumbers; readonly batches: PostgresBatches }

/** How long a batch waits for an unavailable database before it fails. */
const patience = 3000
/**
 * A connection that sends nothing for this long during a batch is given up. The rest of `patience` is for the next
 * connection.
 */
const silenceMs = 2000
/** The minimum time for the last attempt. */
const leastAttempt = 500
const openMs = 10_000
const retryEvery = 100
const mostCollisions = 5
/** Maximum number of connections for one batch. If another client's lock blocks the batch, every connection times out. */
const mostLosses = 3

/**
 * Writes batches of units to PostgreSQL. A lost connection is replaced. If the answer to a commit is lost, the new
 * connection checks whether the batch was committed.
 */
export async function openPostgresEngine({ url, instance, auditKey, clock }: PostgresSettings): Promise<Engine> {
  const address: PostgresAddress = { url, name: `sallyport ${instance} writer` }
  const ended = Promise.withResolvers<GatewayError>()
  const closing = new AbortController()
  let end: GatewayError | undefined
  let restoring: Promise<Writing> | undefined
  let underWay = false
  let readersEnded: Promise<void> | undefined

  await prepare(address, clock.now())
  const readers = await createReaders({ url, name: `sallyport ${instance} reader` })
  let writing = await open(openMs).catch(async (error: unknown) => {
    await readers.end()
    throw toUnavailable('The database cannot be written', error, url)
  })
  let batch = writing.link.batch

  async function open(deadlineMs: number): Promise<Writing> {
    const link = await openWriterLink(address, instance, deadlineMs)
    const entries = createEntryNumbers({ instance, key: auditKey, last: link.last })
    const opened = { link, entries, batches: createPostgresBatches({ client: link.client, instance, entries }) }
    link.lost.then(() => {
      // A running batch restores the connection itself, within the rest of its `patience`.
      if (!closing.signal.aborted && writing === opened && !underWay) restore(opened).catch(() => {})
    })
    return opened
  }

  /** Replaces a lost connection. If the database stays unreachable, the engine ends. */
  async function restore(lost: Writing, patiently = patience): Promise<Writing> {
    if (writing !== lost) return writing
    restoring ??= reopen(patiently).finally(() => {
      restoring = undefined
    })
    return restoring
  }

  async function reopen(patiently: number): Promise<Writing> {
    const until = clock.monotonic() + patiently
    while (true) {
      try {
        if (end) throw end
        writing = await open(Math.max(leastAttempt, until - clock.monotonic()))
        return writing
      } catch (error) {
        if (closing.signal.aborted || clock.monotonic() >= until) {
          throw stop(toUnavailable('The database cannot be reached', error, url))
        }
      }
      await sleep(clock, retryEvery, closing.signal).catch(() => {})
    }
  }

  async function run(units: readonly Unit[]): Promise<readonly UnitOutcome[]> {
    if (units.every((unit) => unit.length === 0)) return units.map(() => nothing)
    const number = batch + 1
    let collisions = 0
    let losses = 0
    const until = clock.monotonic() + patience
    while (true) {
      if (end) throw end
      const current = restoring ? await restoring : writing
      const began = clock.monotonic()
      const silent = losses === 0 ? silenceMs : Math.max(leastAttempt, until - began)
      underWay = true
      const attempt = await tryBatch(current, units, { number, clock, silenceMs: silent })
      underWay = false
      if (attempt.kind === 'failed') {
        if (isCollision(attempt.error) && collisions++ < mostCollisions) continue
        throw toUnavailable('The database cannot be written', attempt.error, url)
      }
      // Only this engine writes this batch number, and the lost connection cannot write any more. So the number that
      // the new connection finds is reliable.
      if (attempt.kind === 'lost') {
        const left = patience - Math.min(clock.monotonic() - began, silenceMs)
        if ((await restore(current, left)).link.batch !== number) {
          if (++losses < mostLosses) continue
          throw new GatewayError('storage-unavailable', 'The database answers, but the write did not finish in time')
        }
      }
      batch = number
      return attempt.outcomes
    }
  }

  async function close(): Promise<void> {
    closing.abort()
    await Promise.allSettled([writing.link.close(), restoring])
    stop(new GatewayError('storage-unavailable', 'The storage is closed'))
    await readersEnded
  }

  function stop(error: GatewayError): GatewayError {
    if (end) return end
    end = error
    ended.resolve(error)
    readersEnded = readers.end().catch(() => {})
    return error
  }

  return {
    run,
    async query({ sql, parameters }) {
      try {
        return (await readers.query(sql, [...parameters])).rows
      } catch (error) {
        throw toUnavailable('The database cannot be read', error, url)
      }
    },
    ended: ended.promise,
    close,
  }
}

type Attempt =
  | { readonly kind: 'committed'; readonly outcomes: readonly UnitOutcome[] }
  | { readonly kind: 'failed'; readonly error: unknown }
  /** The connection is lost. If the commit was already sent, only the database knows whether it succeeded. */
  | { readonly kind: 'lost'; readonly outcomes: readonly UnitOutcome[] }

async function tryBatch(
  { link, entries, batches }: Writing,
  units: readonly Unit[],
  { number, clock, silenceMs }: { number: number; clock: Clock; silenceMs: number },
): Promise<Attempt> {
  const before = entries.position()
  let outcomes: readonly UnitOutcome[] = []
  async function write(): Promise<void> {
    outcomes = await batches.run(units, number)
    await link.client.query('commit')
  }
  try {
    await unlessSilent({ link, clock, silenceMs }, write())
    return { kind: 'committed', outcomes }
  } catch (error) {
    entries.rewind(before)
    if (codeOf(error) === undefined) {
      link.cut()
      return { kind: 'lost', outcomes }
    }
    await link.client.query('rollback').catch(() => {})
    return { kind: 'failed', error }
  }
}

async function prepare(address: PostgresAddress, now: number): Promise<void> {
  const { client, close } = await connectPostgres(address, false)
  try {
    await migratePostgres(client, now)
  } catch (error) {
    throw error instanceof GatewayError ? error : toUnavailable('The database cannot be prepared', error, address.url)
  } finally {
    await close()
  }
}

const nothing: UnitOutcome = { kind: 'done', changes: 0, rows: [] }

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
  /** The key that chains them. */
  readonly auditKey: Uint8Array
  readonly clock: Clock
}

/** What one connection needs to write; another one begins with others. */
type Writing = { readonly link: WriterLink; readonly entries: EntryNumbers; readonly batches: PostgresBatches }

/** How long a batch waits for a database that is away for a moment before it counts as lost. */
const patience = 3000
/** A connection that says nothing for so long while a batch waits is given up; what is left of `patience` is for the next. */
const silenceMs = 2000
/** The last attempt within the patience gets at least this. */
const leastAttempt = 500
const openMs = 10_000
const retryEvery = 100
const mostCollisions = 5
/** A batch that a lock of somebody else holds up loses every connection that it is given. */
const mostLosses = 3

/** Batches of units on PostgreSQL; a connection that breaks is replaced, and a commit whose answer was lost is looked up. */
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
      // A batch under way restores the connection itself, within what is left of its patience.
      if (!closing.signal.aborted && writing === opened && !underWay) restore(opened).catch(() => {})
    })
    return opened
  }

  /** Another connection in place of the lost one; once nobody can be reached for too long, this engine is over. */
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
          throw stop(toUnavailable('The database is gone', error, url))
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
      // Nobody else writes this number, and the lost connection cannot any more: what the new one finds is the truth.
      if (attempt.kind === 'lost') {
        const left = patience - Math.min(clock.monotonic() - began, silenceMs)
        if ((await restore(current, left)).link.batch !== number) {
          if (++losses < mostLosses) continue
          throw new GatewayError('storage-unavailable', 'The database answers, but it did not write in time')
        }
      }
      batch = number
      return attempt.outcomes
    }
  }

  async function close(): Promise<void> {
    closing.abort()
    await Promise.allSettled([writing.link.close(), restoring])
    stop(new GatewayError('storage-unavailable', 'The store is closed'))
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
  /** The connection is gone; if the commit was under way, what became of it stands in the database. */
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

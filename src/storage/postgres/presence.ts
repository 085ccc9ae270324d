import type { Client } from 'pg'
import { z } from 'zod'
import { GatewayError } from '../../contract/errors.ts'
import { sleep, systemClock } from '../../lib/clock.ts'
import { parseJson } from '../../lib/json.ts'
import type { Log } from '../../lib/log.ts'
import { type Changes, type ChangeTopic, changeTopics, createLocalChanges, perTopic } from '../changes.ts'
import { connectPostgres, endEarlier, instanceLock, type PostgresLink, toUnavailable } from './connection.ts'
import type { SharedClock } from './shared-clock.ts'

/** Shows the other instances on the database that this one is alive, and receives the changes that they announce. */
export type Presence = {
  readonly changes: Changes
  /** Why this instance must not accept calls: its lease has expired, or the machine's clock is too wrong. */
  findProblem(): GatewayError | undefined
  /**
   * How many milliseconds the lease has been renewed in time; 0 if it has expired. While the lease is valid, all
   * changes that others announced before its last renewal have been read.
   */
  steadyFor(): number
  /** Takes the lease for the first time, after the row of this instance was inserted. Later renewals are automatic. */
  begin(): Promise<void>
  close(): Promise<void>
}

type Owed = { readonly since: number; readonly read: Promise<void> }

type PresenceParts = {
  readonly url: string
  readonly instance: string
  readonly clock: SharedClock
  readonly log: Log
}

const channel = 'sallyport'
/** An instance that has not renewed its lease for this long accepts no calls, and other instances do not wait for it. */
export const leaseMs = 2000
const renewEvery = 500
const retryEvery = 200
/** By then the other instances have confirmed or lost their lease. If not, this instance cannot reach the database. */
const announceMs = 10_000
/** If the database has not answered for this long, announcements fail. */
const silentMs = leaseMs + renewEvery

const Notice = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('changed'), id: z.string(), from: z.string(), topic: z.enum(changeTopics) }),
  z.object({ kind: z.literal('seen'), id: z.string(), by: z.string() }),
])
type Notice = z.infer<typeof Notice>

/** Milliseconds since 1970 from the database's clock, which all instances share. */
export const databaseNow = '(extract(epoch from clock_timestamp()) * 1000)::bigint'

/**
 * The lease starts at the time up to which all changes were read, so that other instances do not wait longer for this
 * one.
 */
const renew = `update instances set renewed_at = ${databaseNow} - $2, ended_at = null where id = $1 returning ${databaseNow} as now`
const living = `select id from instances where id <> $1 and ended_at is null and renewed_at > ${databaseNow} - ${leaseMs}`

/** One connection holds the instance's lock, renews its lease and listens for notices. A lost connection is replaced. */
export async function openPresence({ url, instance, clock, log }: PresenceParts): Promise<Presence> {
  const local = createLocalChanges()
  const closing = new AbortController()
  /** The instances that have confirmed each announcement that this instance is making. */
  const confirmed = new Map<string, Set<string>>()
  /** Announcements of other instances that have not been read yet, with their time of arrival. */
  const owed = new Map<string, Owed>()
  let heard = Promise.withResolvers<void>()
  // Never expires before `begin`, because no calls are accepted until then.
  let lease = { until: Number.POSITIVE_INFINITY, untilTime: Number.POSITIVE_INFINITY }
  let grantedAt = 0
  let steadySince = clock.monotonic()
  let answeredAt = clock.monotonic()
  let announcements = 0
  let link = await connect()
  let keeping: Promise<void> | undefined

  async function connect(): Promise<PostgresLink> {
    const name = `sallyport ${instance} presence`
    const opened = await connectPostgres({ url, name, timeoutMs: leaseMs }, true)
    const next = opened.client
    next.on('notification', ({ payload = '' }) => receive(payload))
    try {
      await next.query(`set lock_timeout = ${leaseMs}`)
      await endEarlier(next, name)
      await next.query(`select pg_advisory_lock(${instanceLock('$1::text')})`, [instance])
      await next.query(`listen ${channel}`)
      await clock.measure(() => readTime(next, `select ${databaseNow} as now`))
      return opened
    } catch (error) {
      opened.cut()
      throw toUnavailable('The database cannot be reached', error, url)
    }
  }

  async function readTime(from: Client, sql: string, parameters: unknown[] = []): Promise<number> {
    const [row] = (await from.query<{ now: number }>(sql, parameters)).rows
    if (row) return row.now
    throw new GatewayError('storage-unavailable', 'This instance has no row in the database')
  }

  function receive(payload: string): void {
    const notice = parseNotice(payload)
    if (notice?.kind === 'seen') {
      confirmed.get(notice.id)?.add(notice.by)
      heard.resolve()
      heard = Promise.withResolvers()
    }
    if (notice?.kind === 'changed' && notice.from !== instance) void readAgain(notice.id, notice.topic)
  }

  async function readAgain(id: string, topic: ChangeTopic): Promise<void> {
    const read = untilRead(() => local.announce(topic))
    // An announcement is repeated until it is confirmed. The first arrival is used.
    if (!owed.has(id)) owed.set(id, { since: clock.monotonic(), read })
    try {
      await read
      owed.delete(id)
      await notify({ kind: 'seen', id, by: instance })
    } catch {
      owed.delete(id) // connection lost (then everything is read again) or instance closing
    }
  }

  /** Retries until the read succeeds. The lease is not renewed before that. */
  async function untilRead(read: () => Promise<void>): Promise<void> {
    while (true) {
      closing.signal.throwIfAborted()
      try {
        return await read()
      } catch (error) {
        log.warn({ reason: String(error) }, 'could not read a change that another gateway announced; retrying')
      }
      await sleep(clock, retryEvery, closing.signal)
    }
  }

  async function notify(notice: Notice): Promise<void> {
    await link.client.query('select pg_notify($1, $2)', [channel, JSON.stringify(notice)])
  }

  /**
   * Resolves when the database has answered. The lease is granted once all changes that were announced before have been
   * read.
   */
  async function renewLease(): Promise<{ granted: Promise<void> }> {
    const sent = { at: clock.monotonic(), time: systemClock.now() }
    const unread = Math.ceil(sent.at - readUpTo(sent.at))
    await clock.measure(() => readTime(link.client, renew, [instance, unread]))
    answeredAt = clock.monotonic()
    // PostgreSQL delivers notices before the answer to a later query, so `owed` contains all of them. A process that
    // was suspended receives notices long after they were sent, so their time of arrival alone is not enough.
    const announced = [...owed.values()].map(({ read }) => read)
    return { granted: Promise.all(announced).then(() => grant(sent)) }
  }

  function grant({ at, time }: { at: number; time: number }): void {
    if (at < grantedAt) return
    if (!hasLease()) steadySince = clock.monotonic()
    grantedAt = at
    lease = { until: at + leaseMs, untilTime: time + leaseMs }
  }

  /** All changes that arrived before this time have been read. */
  function readUpTo(now: number): number {
    return Math.min(now, ...[...owed.values()].map(({ since }) => since))
  }

  // Also compares the machine's time of day, because the monotonic clock stops while a machine sleeps.
  function hasLease(): boolean {
    return clock.monotonic() < lease.until && systemClock.now() < lease.untilTime
  }

  async function keep(): Promise<void> {
    while (!closing.signal.aborted) {
      try {
        const { granted } = await renewLease()
        granted.catch(() => {}) // rejected when this instance closes
        await sleep(clock, renewEvery, closing.signal)
      } catch {
        await replace()
      }
    }
  }

  async function replace(): Promise<void> {
    link.cut()
    while (!closing.signal.aborted) {
      try {
        link = await connect()
        // Notices that were sent while the connection was lost never arrive, so all topics are read again.
        await untilRead(async () => void (await Promise.all(changeTopics.map((topic) => local.announce(topic)))))
        return
      } catch {
        await sleep(clock, retryEvery, closing.signal).catch(() => {})
      }
    }
  }

  /** Changes that are announced during an announcement of the same topic share the next announcement. */
  const announcing = perTopic((topic) => () => announceToAll(topic))

  /** Repeats the announcement until all living instances confirm, because a notice can be lost with a connection. */
  async function announceToAll(topic: ChangeTopic): Promise<void> {
    await local.announce(topic)
    const id = `${instance}-${++announcements}`
    const by = new Set<string>()
    confirmed.set(id, by)
    const until = clock.monotonic() + announceMs
    try {
      while (clock.monotonic() < until && clock.monotonic() - answeredAt < silentMs) {
        if (await isSeen(id, topic, by).catch(() => false)) return
        closing.signal.throwIfAborted()
      }
    } finally {
      confirmed.delete(id)
    }
    throw new GatewayError(
      'storage-unavailable',
      'The change is saved, but the database does not answer, so other gateways may not have read the change yet',
    )
  }

  async function isSeen(id: string, topic: ChangeTopic, by: ReadonlySet<string>): Promise<boolean> {
    const round = AbortSignal.any([closing.signal, AbortSignal.timeout(renewEvery)])
    const passed = sleep(clock, renewEvery, round).catch(() => {})
    try {
      await notify({ kind: 'changed', id, from: instance, topic })
      while (!round.aborted) {
        const news = heard.promise
        const others = await link.client.query<{ id: string }>(living, [instance])
        if (others.rows.every((other) => by.has(other.id))) return true
        await Promise.race([news, passed])
      }
    } catch {
      await passed
    }
    return false
  }

  return {
    changes: { announce: (topic) => announcing[topic](), on: local.on },
    findProblem: () => (hasLease() ? clock.findProblem() : leaseExpired()),
    steadyFor: () => (hasLease() ? clock.monotonic() - steadySince : 0),
    async begin() {
      await (await renewLease()).granted
      steadySince = clock.monotonic()
      keeping = keep()
    },
    async close() {
      closing.abort(new GatewayError('storage-unavailable', 'The storage is closed'))
      await keeping
      await link.close()
    },
  }
}

function leaseExpired(): GatewayError {
  return new GatewayError('storage-unavailable', `The database has not answered for ${leaseMs / 1000} seconds`)
}

/** Any client of the database can write to the channel, so unknown notices are ignored. */
function parseNotice(payload: string): Notice | undefined {
  try {
    return Notice.safeParse(parseJson(payload)).data
  } catch {
    return undefined
  }
}

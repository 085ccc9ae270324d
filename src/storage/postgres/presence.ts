import type { Client } from 'pg'
import { z } from 'zod'
import { GatewayError } from '../../contract/errors.ts'
import { sleep, systemClock } from '../../lib/clock.ts'
import { parseJson } from '../../lib/json.ts'
import type { Log } from '../../lib/log.ts'
import { type Changes, type ChangeTopic, changeTopics, createLocalChanges, perTopic } from '../changes.ts'
import { connectPostgres, endEarlier, instanceLock, type PostgresLink, toUnavailable } from './connection.ts'
import type { SharedClock } from './shared-clock.ts'

/** How the other instances on a database know that this one lives, and how it hears of what they change. */
export type Presence = {
  readonly changes: Changes
  /** Why nothing may be served: the lease is over, or the machine's clock is too wrong. */
  findProblem(): GatewayError | undefined
  /**
   * For how many milliseconds the lease has been renewed in time; 0 while it is over. With a lease, all that others changed
   * before it was last renewed has been read.
   */
  steadyFor(): number
  /** For the first time, when there is a row to renew it in; afterwards it goes on by itself. */
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
/** An instance that has not renewed for so long serves nobody, and nobody waits for it. */
export const leaseMs = 2000
const renewEvery = 500
const retryEvery = 200
/** The others have confirmed by then or lost their lease; longer means that we cannot reach the database ourselves. */
const announceMs = 10_000
/** A database that has not answered for so long is away: whoever waits for an announcement is told so. */
const silentMs = leaseMs + renewEvery

const Notice = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('changed'), id: z.string(), from: z.string(), topic: z.enum(changeTopics) }),
  z.object({ kind: z.literal('seen'), id: z.string(), by: z.string() }),
])
type Notice = z.infer<typeof Notice>

/** Milliseconds since 1970 by the clock of the database, the one that all instances share. */
export const databaseNow = '(extract(epoch from clock_timestamp()) * 1000)::bigint'

/** The lease counts from the moment up to which everything was read, so that nobody waits longer for this instance. */
const renew = `update instances set renewed_at = ${databaseNow} - $2, ended_at = null where id = $1 returning ${databaseNow} as now`
const living = `select id from instances where id <> $1 and ended_at is null and renewed_at > ${databaseNow} - ${leaseMs}`

/** One connection holds the instance's lock, renews its lease and listens; when it breaks, another takes its place. */
export async function openPresence({ url, instance, clock, log }: PresenceParts): Promise<Presence> {
  const local = createLocalChanges()
  const closing = new AbortController()
  /** Who has confirmed each announcement that is under way here. */
  const confirmed = new Map<string, Set<string>>()
  /** Announcements of others that have not been read yet, with the time of their arrival. */
  const owed = new Map<string, Owed>()
  let heard = Promise.withResolvers<void>()
  // Nothing is served before it begins.
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
    // Announced repeatedly until it is confirmed: the first time counts.
    if (!owed.has(id)) owed.set(id, { since: clock.monotonic(), read })
    try {
      await read
      owed.delete(id)
      await tell({ kind: 'seen', id, by: instance })
    } catch {
      owed.delete(id) // the connection is gone or this instance closes: either way everything is read again first
    }
  }

  /** Whatever keeps it from being read, the lease is not renewed before it was. */
  async function untilRead(read: () => Promise<void>): Promise<void> {
    while (true) {
      closing.signal.throwIfAborted()
      try {
        return await read()
      } catch (error) {
        log.warn({ reason: String(error) }, 'What another gateway changed could not be read')
      }
      await sleep(clock, retryEvery, closing.signal)
    }
  }

  async function tell(notice: Notice): Promise<void> {
    await link.client.query('select pg_notify($1, $2)', [channel, JSON.stringify(notice)])
  }

  /** Resolves when the database has answered. The lease follows once everything was read that was announced before. */
  async function renewLease(): Promise<{ granted: Promise<void> }> {
    const sent = { at: clock.monotonic(), time: systemClock.now() }
    const unread = Math.ceil(sent.at - readUpTo(sent.at))
    await clock.measure(() => readTime(link.client, renew, [instance, unread]))
    answeredAt = clock.monotonic()
    // PostgreSQL delivers notices before the answer to a later query, so `owed` has all of them. A process that slept
    // reads notices long after they were sent: their time of arrival alone says nothing about what was announced before.
    const announced = [...owed.values()].map(({ read }) => read)
    return { granted: Promise.all(announced).then(() => grant(sent)) }
  }

  function grant({ at, time }: { at: number; time: number }): void {
    if (at < grantedAt) return
    if (!holds()) steadySince = clock.monotonic()
    grantedAt = at
    lease = { until: at + leaseMs, untilTime: time + leaseMs }
  }

  /** Everything that arrived before this moment has been read. */
  function readUpTo(now: number): number {
    return Math.min(now, ...[...owed.values()].map(({ since }) => since))
  }

  // The time of day too, and always the machine's own: the other clock stands still while a machine sleeps.
  function holds(): boolean {
    return clock.monotonic() < lease.until && systemClock.now() < lease.untilTime
  }

  async function keep(): Promise<void> {
    while (!closing.signal.aborted) {
      try {
        const { granted } = await renewLease()
        granted.catch(() => {}) // this instance closes
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
        // What was announced meanwhile never arrives: everything could have changed.
        await untilRead(async () => void (await Promise.all(changeTopics.map((topic) => local.announce(topic)))))
        return
      } catch {
        await sleep(clock, retryEvery, closing.signal).catch(() => {})
      }
    }
  }

  /** Changes that are announced while one of the same topic is under way share the next announcement. */
  const announcing = perTopic((topic) => () => tellEverybody(topic))

  /** Told again and again: a notice that nobody confirmed may have been lost with a connection. */
  async function tellEverybody(topic: ChangeTopic): Promise<void> {
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
      'The change is saved, but whether the other gateways have read it is not known: the database does not answer',
    )
  }

  async function isSeen(id: string, topic: ChangeTopic, by: ReadonlySet<string>): Promise<boolean> {
    const round = AbortSignal.any([closing.signal, AbortSignal.timeout(renewEvery)])
    const passed = sleep(clock, renewEvery, round).catch(() => {})
    try {
      await tell({ kind: 'changed', id, from: instance, topic })
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
    findProblem: () => (holds() ? clock.findProblem() : away()),
    steadyFor: () => (holds() ? clock.monotonic() - steadySince : 0),
    async begin() {
      await (await renewLease()).granted
      steadySince = clock.monotonic()
      keeping = keep()
    },
    async close() {
      closing.abort(new GatewayError('storage-unavailable', 'The store is closed'))
      await keeping
      await link.close()
    },
  }
}

function away(): GatewayError {
  return new GatewayError('storage-unavailable', `The database has not answered for ${leaseMs / 1000} seconds`)
}

/** Anybody at the database may write to the channel: what we do not know is not ours. */
function parseNotice(payload: string): Notice | undefined {
  try {
    return Notice.safeParse(parseJson(payload)).data
  } catch {
    return undefined
  }
}

import type { Client } from 'pg'
import { z } from 'zod'
import { GatewayError } from '../contract/errors.ts'
import { type Clock, sleep, systemClock } from '../lib/clock.ts'
import { parseJson } from '../lib/json.ts'
import type { Log } from '../lib/log.ts'
import { type Changes, type ChangeTopic, changeTopics, createLocalChanges } from './changes.ts'
import { connectPostgres, endEarlier, instanceLock, toUnavailable } from './postgres-connection.ts'

/** How the other instances on a database know that this one lives, and how it hears of what they change. */
export type Presence = {
  readonly changes: Changes
  /** The lease holds: all that others changed before it was last renewed has been read. */
  holds(): boolean
  /** For how many milliseconds the lease has held without a gap; 0 while it does not hold. */
  steadyFor(): number
  /** For the first time, when there is a row to renew it in; afterwards it goes on by itself. */
  begin(): Promise<void>
  close(): Promise<void>
}

type PresenceParts = { readonly url: string; readonly instance: string; readonly clock: Clock; readonly log: Log }

const channel = 'sallyport'
/** An instance that has not renewed for so long serves nobody, and nobody waits for it. */
export const leaseMs = 2000
const renewEvery = 500
const retryEvery = 200
/** The others have confirmed by then or lost their lease; longer means that we cannot reach the database ourselves. */
const announceMs = 10_000

const Notice = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('changed'), id: z.string(), from: z.string(), topic: z.enum(changeTopics) }),
  z.object({ kind: z.literal('seen'), id: z.string(), by: z.string() }),
])
type Notice = z.infer<typeof Notice>

/** Milliseconds since 1970 by the clock of the database, the one that all instances share. */
export const databaseNow = '(extract(epoch from clock_timestamp()) * 1000)::bigint'

const renew = `update instances set renewed_at = ${databaseNow}, ended_at = null where id = $1`
const living = `select id from instances where id <> $1 and ended_at is null and renewed_at > ${databaseNow} - ${leaseMs}`

/** One connection holds the instance's lock, renews its lease and listens; when it breaks, another takes its place. */
export async function openPresence({ url, instance, clock, log }: PresenceParts): Promise<Presence> {
  const local = createLocalChanges()
  const closing = new AbortController()
  /** Who has confirmed each announcement that is under way here. */
  const confirmed = new Map<string, Set<string>>()
  /** Announcements of others that have not been read yet; meanwhile the lease is not renewed. */
  const owed = new Set<string>()
  let heard = Promise.withResolvers<void>()
  // Nothing is served before it begins.
  let lease = { until: Number.POSITIVE_INFINITY, untilTime: Number.POSITIVE_INFINITY }
  let steadySince = clock.monotonic()
  let announcements = 0
  let client = await connect()
  let keeping: Promise<void> | undefined

  async function connect(): Promise<Client> {
    const name = `sallyport ${instance} presence`
    const next = await connectPostgres({ url, name, timeoutMs: leaseMs }, true)
    next.on('notification', ({ payload = '' }) => receive(payload))
    try {
      await next.query(`set lock_timeout = ${leaseMs}`)
      await endEarlier(next, name)
      await next.query(`select pg_advisory_lock(${instanceLock('$1::text')})`, [instance])
      await next.query(`listen ${channel}`)
      return next
    } catch (error) {
      next.end().catch(() => {})
      throw toUnavailable('The database cannot be reached', error, url)
    }
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
    owed.add(id)
    try {
      await untilRead(() => local.announce(topic))
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
    await client.query('select pg_notify($1, $2)', [channel, JSON.stringify(notice)])
  }

  async function renewLease(): Promise<void> {
    const sentAt = { until: clock.monotonic() + leaseMs, untilTime: systemClock.now() + leaseMs }
    await client.query(renew, [instance])
    // Notices arrive before the answer of whatever was sent after them.
    if (owed.size > 0) return
    if (!holds()) steadySince = clock.monotonic()
    lease = sentAt
  }

  // The time of day too, and always the machine's own: the other clock stands still while a machine sleeps.
  function holds(): boolean {
    return clock.monotonic() < lease.until && systemClock.now() < lease.untilTime
  }

  async function keep(): Promise<void> {
    while (!closing.signal.aborted) {
      try {
        await renewLease()
        await sleep(clock, renewEvery, closing.signal)
      } catch {
        await replace()
      }
    }
  }

  async function replace(): Promise<void> {
    client.end().catch(() => {})
    while (!closing.signal.aborted) {
      try {
        client = await connect()
        // What was announced meanwhile never arrives: everything could have changed.
        await untilRead(async () => void (await Promise.all(changeTopics.map((topic) => local.announce(topic)))))
        return
      } catch {
        await sleep(clock, retryEvery, closing.signal).catch(() => {})
      }
    }
  }

  /** Told again and again: a notice that nobody confirmed may have been lost with a connection. */
  async function announce(topic: ChangeTopic): Promise<void> {
    await local.announce(topic)
    const id = `${instance}-${++announcements}`
    const by = new Set<string>()
    confirmed.set(id, by)
    const until = clock.monotonic() + announceMs
    try {
      while (clock.monotonic() < until) {
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
        const others = await client.query<{ id: string }>(living, [instance])
        if (others.rows.every((other) => by.has(other.id))) return true
        await Promise.race([news, passed])
      }
    } catch {
      await passed
    }
    return false
  }

  return {
    changes: { announce, on: local.on },
    holds,
    steadyFor: () => (holds() ? clock.monotonic() - steadySince : 0),
    async begin() {
      await renewLease()
      steadySince = clock.monotonic()
      keeping = keep()
    },
    async close() {
      closing.abort(new GatewayError('storage-unavailable', 'The store is closed'))
      await keeping
      await client.end().catch(() => {})
    },
  }
}

/** Anybody at the database may write to the channel: what we do not know is not ours. */
function parseNotice(payload: string): Notice | undefined {
  try {
    return Notice.safeParse(parseJson(payload)).data
  } catch {
    return undefined
  }
}

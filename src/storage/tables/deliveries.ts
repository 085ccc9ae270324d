import type { SelectQueryBuilder } from 'kysely'
import { z } from 'zod'
import { GatewayError } from '../../contract/errors.ts'
import { Delivery, DeliveryState } from '../../contract/webhook.ts'
import { toIso } from '../../lib/clock.ts'
import { type Database, type DeliveriesTable, type Tables, toStatement } from '../database.ts'
import { type Page, parseCursor, toPage, toPageLimit } from '../page.ts'
import type { Statement, Unit } from '../unit.ts'
import type { Writer } from '../writer.ts'
import { type Change, toChangeEntry } from './audit.ts'

export type DeliveryQuery = {
  readonly limit: number
  readonly cursor?: string
  readonly state?: DeliveryState
  readonly endpoint?: string
}

export type NewDelivery = {
  readonly id: string
  readonly endpoint: string
  readonly type: string
  /** The JSON text that is sent. */
  readonly body: string
  readonly createdAt: number
}

/** A delivery that this instance is sending. */
export type TakenDelivery = NewDelivery & {
  /** The number of earlier attempts. */
  readonly attempts: number
}

/** The result of one attempt. */
export type Attempt = { readonly at: number; readonly status?: number | undefined; readonly error?: string | undefined }

/** `next` is the final state, or the time of the next attempt. */
export type AttemptEnd = Attempt & ({ readonly next: 'delivered' | 'failed' } | { readonly next: number })

export type EndpointTally = {
  readonly waiting: number
  readonly delivered: number
  readonly failed: number
  readonly lastSuccessAt?: number
  readonly lastFailure?: { readonly at: number; readonly error: string }
}

/** The limits per endpoint: how many deliveries are stored, and for how long. */
export type DeliveryBounds = {
  readonly waiting: number
  readonly delivered: { readonly count: number; readonly milliseconds: number }
  readonly failed: { readonly count: number; readonly milliseconds: number }
}

export type DeliveryStore = {
  /** Existing deliveries are not changed, so gateways that receive the same event write it only once. */
  add(deliveries: readonly NewDelivery[]): Promise<void>
  /** The due deliveries of an endpoint that no instance is sending, in the order in which they became due. */
  due(endpoint: string, limit: number): Promise<string[]>
  /** Assigns the delivery to this instance. Undefined if another instance took it first. */
  take(id: string): Promise<TakenDelivery | undefined>
  /** Records the result of an attempt. Ignored if another instance has taken over the delivery. */
  end(id: string, end: AttemptEnd): Promise<void>
  /** Undoes `take`. */
  putBack(id: string): Promise<void>
  find(id: string): Promise<Delivery | undefined>
  /** Newest first. */
  list(query: DeliveryQuery): Promise<Page<Delivery>>
  tally(): Promise<ReadonlyMap<string, EndpointTally>>
  /** Makes the delivery due now and resets its attempts. False if it was delivered or is being sent. */
  again(id: string, change: Change): Promise<boolean>
  /** Marks the waiting deliveries of these endpoints as failed. */
  giveUp(endpoints: readonly string[], error: string): Promise<void>
  /** Removes deliveries that exceed the limits. Returns the number of waiting deliveries that were dropped, by endpoint. */
  sweep(bounds: DeliveryBounds): Promise<ReadonlyMap<string, number>>
  /** A step of recovery: makes deliveries of dead instances available again. */
  release(dead: readonly string[]): Statement
}

type DeliveryStoreParts = { database: Database; writer: Writer; instance: string; now(): number }

const Cursor = z.tuple([z.number(), z.string()])

export function createDeliveryStore({ database, writer, instance, now }: DeliveryStoreParts): DeliveryStore {
  const update = () => database.updateTable('deliveries')
  const waiting = () => update().where('state', '=', 'waiting')

  return {
    async add(deliveries) {
      await commit(deliveries.map((delivery) => toStatement(insert(delivery))))
    },
    async due(endpoint, limit) {
      const rows = await database
        .selectFrom('deliveries')
        .select('id')
        .where('endpoint', '=', endpoint)
        .where('state', '=', 'waiting')
        .where('instance', 'is', null)
        .where('next_at', '<=', now())
        .orderBy('next_at')
        .orderBy('created_at')
        .orderBy('id')
        .limit(limit)
        .execute()
      return rows.map(({ id }) => id)
    },
    async take(id) {
      const row = await waiting()
        .set({ instance })
        .where('id', '=', id)
        .where('instance', 'is', null)
        .where('next_at', '<=', now())
        .returningAll()
        .executeTakeFirst()
      return row && toTaken(row)
    },
    end: (id, end) =>
      write([
        toStatement(
          mine(id).set((row) => ({ attempts: row('attempts', '+', 1), ...toColumns(end) })),
          1,
        ),
      ]),
    putBack: (id) => write([toStatement(mine(id).set({ instance: null }), 1)]),
    async find(id) {
      const row = await database.selectFrom('deliveries').selectAll().where('id', '=', id).executeTakeFirst()
      return row && toDelivery(row)
    },
    list,
    tally,
    async again(id, change) {
      const fresh = { state: 'waiting', attempts: 0, next_at: now(), ended_at: null }
      const row = update()
        .set(fresh)
        .where('id', '=', id)
        .where('state', '!=', 'delivered')
        .where('instance', 'is', null)
      return commit([toStatement(row, 1), { entry: toChangeEntry(change, now()) }])
    },
    async giveUp(endpoints, error) {
      const failed = { state: 'failed', error, ended_at: now() }
      const rows = waiting().set(failed).where('endpoint', 'in', endpoints).where('instance', 'is', null)
      await commit([toStatement(rows)])
    },
    sweep,
    release: (dead) => toStatement(update().set({ instance: null }).where('instance', 'in', dead)),
  }

  function mine(id: string) {
    return waiting().where('id', '=', id).where('instance', '=', instance)
  }

  function insert({ id, endpoint, type, body, createdAt }: NewDelivery) {
    const fresh = { state: 'waiting', attempts: 0, next_at: createdAt, instance: null, created_at: createdAt }
    const untried = { last_at: null, status: null, error: null, ended_at: null }
    return database
      .insertInto('deliveries')
      .values({ id, endpoint, type, body, ...fresh, ...untried })
      .onConflict((conflict) => conflict.column('id').doNothing())
  }

  async function list({ cursor, limit: wanted, state, endpoint }: DeliveryQuery): Promise<Page<Delivery>> {
    const limit = toPageLimit(wanted)
    let rows = database.selectFrom('deliveries').selectAll()
    if (state !== undefined) rows = rows.where('state', '=', state)
    if (endpoint !== undefined) rows = rows.where('endpoint', '=', endpoint)
    if (cursor !== undefined) {
      const [at, id] = parseCursor(cursor, Cursor)
      rows = rows.where(({ eb, refTuple, tuple }) => eb(refTuple('created_at', 'id'), '<', tuple(at, id)))
    }
    const found = await rows
      .orderBy('created_at', 'desc')
      .orderBy('id', 'desc')
      .limit(limit + 1)
      .execute()
    return toPage(found, limit, toDelivery, (row) => [row.created_at, row.id])
  }

  async function tally(): Promise<ReadonlyMap<string, EndpointTally>> {
    const rows = await database
      .selectFrom('deliveries')
      .select(['endpoint', 'state'])
      .select(({ fn }) => [fn.countAll<number>().as('count'), fn.max('last_at').as('last')])
      .groupBy(['endpoint', 'state'])
      .execute()
    const found = new Map<string, EndpointTally>()
    for (const { endpoint, state, count, last } of rows) {
      const before = found.get(endpoint) ?? { waiting: 0, delivered: 0, failed: 0 }
      const success = state === 'delivered' && last !== null ? { lastSuccessAt: Number(last) } : {}
      found.set(endpoint, { ...before, [DeliveryState.parse(state)]: Number(count), ...success })
    }
    for (const [endpoint, counts] of found) found.set(endpoint, { ...counts, ...(await lastFailure(endpoint)) })
    return found
  }

  async function lastFailure(endpoint: string): Promise<Pick<EndpointTally, 'lastFailure'>> {
    const row = await database
      .selectFrom('deliveries')
      .select(['last_at', 'error'])
      .where('endpoint', '=', endpoint)
      .where('error', 'is not', null)
      .where('last_at', 'is not', null)
      .orderBy('last_at', 'desc')
      .limit(1)
      .executeTakeFirst()
    return row ? { lastFailure: { at: row.last_at ?? 0, error: row.error ?? '' } } : {}
  }

  async function sweep(bounds: DeliveryBounds): Promise<ReadonlyMap<string, number>> {
    const dropped = new Map<string, number>()
    for (const state of ['delivered', 'failed'] as const) await forgetOld(state, now() - bounds[state].milliseconds)
    for (const endpoint of await listEndpoints()) {
      await dropOldest(endpoint, 'delivered', bounds.delivered.count)
      await dropOldest(endpoint, 'failed', bounds.failed.count)
      const gone = await dropOldest(endpoint, 'waiting', bounds.waiting)
      if (gone > 0) dropped.set(endpoint, gone)
    }
    return dropped
  }

  async function listEndpoints(): Promise<string[]> {
    const rows = await database.selectFrom('deliveries').select('endpoint').distinct().execute()
    return rows.map(({ endpoint }) => endpoint)
  }

  async function forgetOld(state: DeliveryState, before: number): Promise<void> {
    const old = database
      .selectFrom('deliveries')
      .select('id')
      .where('state', '=', state)
      .where('ended_at', '<=', before)
    while ((await remove(old.limit(atOnce))) === atOnce) {
      // continue with the next commit
    }
  }

  /** Drops all but the newest `most`. Several gateways that do this at once drop the same deliveries. */
  async function dropOldest(endpoint: string, state: DeliveryState, most: number): Promise<number> {
    const rows = database.selectFrom('deliveries').where('endpoint', '=', endpoint).where('state', '=', state)
    const last = await rows
      .select(['created_at', 'id'])
      .orderBy('created_at', 'desc')
      .orderBy('id', 'desc')
      .limit(1)
      .offset(most)
      .executeTakeFirst()
    if (!last) return 0
    const old = rows
      .select('id')
      .where('instance', 'is', null)
      .where(({ eb, refTuple, tuple }) => eb(refTuple('created_at', 'id'), '<=', tuple(last.created_at, last.id)))
    let gone = 0
    for (let removed = atOnce; removed === atOnce; gone += removed) removed = await remove(old.limit(atOnce))
    return gone
  }

  /** Selects first, so that a gateway without webhooks does not write. */
  async function remove(selected: Selected): Promise<number> {
    const found = await selected.execute()
    if (found.length === 0) return 0
    const these = found.map(({ id }) => id)
    const { numDeletedRows } = await database
      .deleteFrom('deliveries')
      .where('id', 'in', these)
      .executeTakeFirstOrThrow()
    return Number(numDeletedRows)
  }

  /** False if a row was not in the expected state. */
  async function commit(unit: Unit): Promise<boolean> {
    const outcome = await writer.commit(unit)
    if (outcome.kind === 'done') return true
    if (outcome.by === 'expectation') return false
    throw new GatewayError('internal', `A delivery could not be written: ${outcome.reason}`)
  }

  /** If the database is unavailable, the result is queued. Otherwise the message would be sent again. */
  async function write(unit: Unit): Promise<void> {
    await writer.commit(unit).catch(() => writer.keep(unit))
  }
}

type Selected = SelectQueryBuilder<Tables, 'deliveries', { id: string }>

/** Rows per commit, so that claims can be committed in between. */
const atOnce = 500

function toColumns({ at, status, error, next }: AttemptEnd) {
  const tried = { last_at: at, status: status ?? null, error: error ?? null, instance: null }
  return { ...tried, ...(typeof next === 'number' ? { next_at: next } : { state: next, ended_at: at }) }
}

function toTaken(row: DeliveriesTable): TakenDelivery {
  const { id, endpoint, type, body, attempts } = row
  return { id, endpoint, type, body, attempts, createdAt: row.created_at }
}

function toDelivery(row: DeliveriesTable): Delivery {
  return Delivery.parse({
    id: row.id,
    endpoint: row.endpoint,
    type: row.type,
    state: row.state,
    attempts: row.attempts,
    createdAt: toIso(row.created_at),
    nextAt: row.state === 'waiting' ? toIso(row.next_at) : undefined,
    lastAt: row.last_at === null ? undefined : toIso(row.last_at),
    status: row.status ?? undefined,
    error: row.error ?? undefined,
    endedAt: row.ended_at === null ? undefined : toIso(row.ended_at),
  })
}

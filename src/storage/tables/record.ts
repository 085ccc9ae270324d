import { GatewayError } from '../../contract/errors.ts'
import { type AuditTable, type Database, toStatement } from '../database.ts'
import type { Unit } from '../unit.ts'
import type { Writer } from '../writer.ts'

/** The last entry of a chain. */
export type ChainHead = { readonly instance: string; readonly sequence: number; readonly hash: string }

/** Reads the audit entries chain by chain, for verification, export and retention. */
export type RecordStore = {
  /** The next chain by name; undefined after the last. */
  nextChain(after: string): Promise<string | undefined>
  /** Ordered by sequence. */
  entries(instance: string, after: number, limit: number): Promise<AuditTable[]>
  /** Anchors or checkpoints after a position, oldest first. */
  marks(kind: 'anchor' | 'checkpoint', from: MarkPlace, limit: number): Promise<AuditTable[]>
  /** The last entries of the chains of living instances, and of the newest other instances. */
  heads(limit: number): Promise<ChainHead[]>
  head(instance: string): Promise<ChainHead | undefined>
  /** Instances that have not ended, or that died and were not cleaned up yet. */
  openInstances(): Promise<string[]>
  /** Calls in the order of their ids, and whether the audit has an entry for each. */
  calls(after: string, limit: number): Promise<{ id: string; recorded: unknown }[]>
  /**
   * The first sequence number of a chain at or after this time, or the one after its last entry. Entries of read calls
   * are written up to 50 ms late, so some entries near the time may be on the other side.
   */
  firstSince(instance: string, time: number): Promise<number>
  /** The first sequence number in a part of a chain whose time is not before `time`. Compares every entry of the part. */
  firstNotBefore(part: { instance: string; from: number; through: number; time: number }): Promise<number | undefined>
  /** The time of the oldest entry, ignoring the chains in `except`. */
  oldest(except: readonly string[]): Promise<number | undefined>
  /** The time of the newest entry of other instances. */
  newestOfOthers(instance: string): Promise<number | undefined>
  /** Removes entries of a chain from `from` to `through`, both included. */
  removal(instance: string, from: number, through: number): Unit
  /** Removes up to `limit` calls that ended before a time and whose ids sort before `floor`. */
  callRemoval(floor: string, before: number, limit: number): Unit
  /** Removes up to `limit` approvals that ended before a time. */
  approvalRemoval(before: number, limit: number): Unit
}

/** A position among marks of one kind: time, then chain and sequence, because several marks may have the same time. */
export type MarkPlace = { readonly at: number; readonly instance: string; readonly sequence: number }

export const beforeAllMarks: MarkPlace = { at: -1, instance: '', sequence: 0 }

export function createRecordStore(database: Database): RecordStore {
  return {
    async nextChain(after) {
      const row = await database
        .selectFrom('audit')
        .select('instance')
        .where('instance', '>', after)
        .orderBy('instance')
        .limit(1)
        .executeTakeFirst()
      return row?.instance
    },
    async entries(instance, after, limit) {
      const rows = await database
        .selectFrom('audit')
        .selectAll()
        .where('instance', '=', instance)
        .where('sequence', '>', after)
        .orderBy('sequence')
        .limit(limit)
        .execute()
      return rows.map(withHash)
    },
    async marks(kind, from, limit) {
      const rows = await database
        .selectFrom('audit')
        .selectAll()
        .where('call', 'is', null) // required to use the index
        .where('kind', '=', kind)
        .where(({ eb, refTuple, tuple }) =>
          eb(refTuple('at', 'instance', 'sequence'), '>', tuple(from.at, from.instance, from.sequence)),
        )
        .where('at', '>=', from.at)
        .orderBy('at')
        .orderBy('instance')
        .orderBy('sequence')
        .limit(limit)
        .execute()
      return rows.map(withHash)
    },
    async heads(limit) {
      const living = database.selectFrom('instances').select('id').where('ended_at', 'is', null)
      const newest = database.selectFrom('instances').select('id').orderBy('id', 'desc').limit(limit)
      const ids = new Set([...(await living.execute()), ...(await newest.execute())].map(({ id }) => id))
      const heads: ChainHead[] = []
      for (const id of ids) {
        const head = await findHead(id)
        if (head) heads.push(head)
      }
      return heads
    },
    head: findHead,
    async openInstances() {
      const rows = await database.selectFrom('instances').select('id').where('ended_at', 'is', null).execute()
      return rows.map(({ id }) => id)
    },
    calls: (after, limit) =>
      database
        .selectFrom('calls')
        .select((calls) => [
          'id',
          calls
            .exists(calls.selectFrom('audit').select('sequence').whereRef('audit.call', '=', 'calls.id'))
            .as('recorded'),
        ])
        .where('id', '>', after)
        .orderBy('id')
        .limit(limit)
        .execute(),
    async firstSince(instance, time) {
      let [low, high] = [(await findPlace(instance, 0))?.sequence ?? 1, ((await findHead(instance))?.sequence ?? 0) + 1]
      while (low < high) {
        const middle = Math.floor((low + high) / 2)
        const place = await findPlace(instance, middle)
        if (place && place.at < time) low = place.sequence + 1
        else high = middle
      }
      return low
    },
    async firstNotBefore({ instance, from, through, time }) {
      const row = await database
        .selectFrom('audit')
        .select('sequence')
        .where('instance', '=', instance)
        .where('sequence', '>=', from)
        .where('sequence', '<=', through)
        .where('at', '>=', time)
        .orderBy('sequence')
        .limit(1)
        .executeTakeFirst()
      return row?.sequence
    },
    async oldest(except) {
      let rows = database.selectFrom('audit').select('at').orderBy('at').limit(1)
      if (except.length > 0) rows = rows.where('instance', 'not in', except)
      return (await rows.executeTakeFirst())?.at
    },
    async newestOfOthers(instance) {
      const rows = database.selectFrom('audit').select('at').where('instance', '!=', instance)
      return (await rows.orderBy('at', 'desc').limit(1).executeTakeFirst())?.at
    },
    removal(instance, from, through) {
      const piece = database.deleteFrom('audit').where('instance', '=', instance)
      return [toStatement(piece.where('sequence', '>=', from).where('sequence', '<=', through))]
    },
    callRemoval(floor, before, limit) {
      const old = database
        .selectFrom('calls')
        .select('id')
        .where('id', '<', floor)
        .where('ended_at', '<', before)
        .orderBy('id')
        .limit(limit)
      return [toStatement(database.deleteFrom('calls').where('id', 'in', old))]
    },
    approvalRemoval(before, limit) {
      const old = database.selectFrom('approvals').select('id').where('requested_at', '<', before)
      const ended = old.where('ended_at', '<', before).orderBy('requested_at').limit(limit)
      return [toStatement(database.deleteFrom('approvals').where('id', 'in', ended))]
    },
  }

  function findPlace(instance: string, from: number): Promise<{ sequence: number; at: number } | undefined> {
    return database
      .selectFrom('audit')
      .select(['sequence', 'at'])
      .where('instance', '=', instance)
      .where('sequence', '>=', from)
      .orderBy('sequence')
      .limit(1)
      .executeTakeFirst()
  }

  async function findHead(instance: string): Promise<ChainHead | undefined> {
    const row = await database
      .selectFrom('audit')
      .select(['instance', 'sequence', 'hash'])
      .where('instance', '=', instance)
      .orderBy('sequence', 'desc')
      .limit(1)
      .executeTakeFirst()
    return row && withHash(row)
  }
}

/** The column is null only if someone changed the table. Such an entry has no hash, like an entry with an empty hash. */
function withHash<Row extends { readonly hash: string | null }>(row: Row): Row & { readonly hash: string } {
  return { ...row, hash: row.hash ?? '' }
}

type MarkParts = {
  readonly writer: Pick<Writer, 'commit'>
  readonly record: RecordStore
  readonly instance: string
  now(): number
  readonly kind: 'anchor' | 'checkpoint'
  readonly body: object
}

const pageRows = 500

/** Writes an entry of the gateway and finds its row. Other entries may be written before and after it at the same time. */
export async function writeMark(parts: MarkParts): Promise<{ row: AuditTable; previous: string }> {
  const { writer, record, instance, now, kind } = parts
  const head = await record.head(instance)
  const body = JSON.stringify(parts.body)
  const outcome = await writer.commit([
    { entry: { at: now(), kind, call: null, principal: 'gateway', subject: 'record', body } },
  ])
  if (outcome.kind === 'refused') throw new GatewayError('internal', `The ${kind} was not recorded: ${outcome.reason}`)
  let previous = head?.hash ?? ''
  let after = head?.sequence ?? 0
  while (true) {
    const rows = await record.entries(instance, after, pageRows)
    for (const row of rows) {
      if (row.kind === kind && row.body === body) return { row, previous }
      previous = row.hash
      after = row.sequence
    }
    if (rows.length === 0) throw new GatewayError('internal', `The ${kind} was recorded, but its entry cannot be found`)
  }
}

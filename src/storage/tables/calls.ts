import { sql } from 'kysely'
import { z } from 'zod'
import { Call, type CallState } from '../../contract/call.ts'
import { type CallEnd, type ResolvedCall, toRecordedMeta } from '../../contract/permit.ts'
import { toIso } from '../../lib/clock.ts'
import { parseJson } from '../../lib/json.ts'
import { type CallsTable, compiledOnce, type Database, toStatement } from '../database.ts'
import { type Page, parseCursor, toPage, toPageLimit } from '../page.ts'
import type { Statement } from '../unit.ts'
import { kindsOf } from './audit.ts'

export type CallQuery = {
  readonly limit: number
  readonly id?: string
  readonly cursor?: string
  readonly principal?: string
  /** Only calls of the principal with this id. An earlier principal may have had the same name. */
  readonly principalId?: string
  /** The id of a user: only calls of this user, and of the user's agents and sessions. */
  readonly ownerId?: string
  readonly tool?: string
  readonly server?: string
  readonly state?: CallState
}

/** A call that was running when its instance died. */
export type OpenCall = Pick<CallsTable, 'id' | 'principal' | 'tool' | 'instance'>

export type CallStore = {
  find(id: string): Promise<Call | undefined>
  /** Newest first. */
  list(query: CallQuery): Promise<Page<Call>>
  /** Calls that these instances sent and did not end. */
  openOf(instances: readonly string[], limit: number): Promise<OpenCall[]>
  /** The row of a call that is running or has already ended. */
  insert(call: ResolvedCall, end?: CallEnd & { readonly late?: boolean }): Statement
  /** The row of a call that waits for approval. */
  insertWaiting(call: ResolvedCall): Statement
  /** Starts a waiting call in this instance. The unit is refused if the call is not waiting. */
  start(call: ResolvedCall): Statement
  /** Ends a running call. The unit is refused if the call has already ended. */
  end(call: string, end: RowEnd): Statement
  /** Ends a call of this instance that another instance closed as `unknown`. The unit is refused in any other state. */
  endUnknown(call: string, end: RowEnd): Statement
  /** Returns a running call to `waiting`: nothing was sent, and its approval is unused. */
  waitAgain(id: string): Statement
  /** Ends a waiting call that will not run. */
  endWaiting(call: string, end: RowEnd): Statement
  markLate(call: string): Statement
}

/** The outcome in the row of a call. A call of a dead instance has no duration. */
export type RowEnd = Omit<CallEnd, 'durationMs'> & { readonly durationMs?: number }

const Cursor = z.tuple([z.string()])

export function createCallStore(database: Database, instance: string): CallStore {
  const insert = compiledOnce(
    (row: CallsTable) => database.insertInto('calls').values(row),
    (row) => Object.values(row),
    1,
  )
  const end = compiledOnce(
    ({ id, columns }: { id: string; columns: EndColumns }) =>
      database.updateTable('calls').set(columns).where('id', '=', id).where('state', '=', 'running'),
    ({ id, columns }) => [...Object.values(columns), id, 'running'],
    1,
  )

  return {
    async find(id) {
      const row = await database.selectFrom('calls').selectAll().where('id', '=', id).executeTakeFirst()
      return row && toCall(row, await readWaits([row]))
    },
    async list({ cursor, ...query }) {
      const limit = toPageLimit(query.limit)
      let rows = database.selectFrom('calls').selectAll()
      if (query.id !== undefined) rows = rows.where('id', '=', query.id)
      if (query.principal !== undefined) rows = rows.where('principal', '=', query.principal)
      const { ownerId } = query
      if (query.principalId !== undefined) rows = rows.where('principal_id', '=', query.principalId)
      if (ownerId !== undefined) {
        const agents = database.selectFrom('agents').select('id')
        const sessions = database.selectFrom('sessions').select(sql<string>`'session-' || name`.as('id'))
        rows = rows.where(({ eb, or }) =>
          or([
            eb('principal_id', '=', ownerId),
            eb('principal_id', 'in', agents.where('owner_id', '=', ownerId)),
            eb('principal_id', 'in', sessions.where('owner_id', '=', ownerId)),
          ]),
        )
      }
      if (query.tool !== undefined) rows = rows.where('tool', '=', query.tool)
      if (query.server !== undefined) rows = rows.where('server', '=', query.server)
      if (query.state !== undefined) rows = rows.where('state', '=', query.state)
      if (cursor !== undefined) rows = rows.where('id', '<', parseCursor(cursor, Cursor)[0])
      // Ids begin with their time, so ordering by id is ordering by time.
      const found = await rows
        .orderBy('id', 'desc')
        .limit(limit + 1)
        .execute()
      const waits = await readWaits(found)
      return toPage(
        found,
        limit,
        (row) => toCall(row, waits),
        (row) => [row.id],
      )
    },
    openOf: (instances, limit) =>
      database
        .selectFrom('calls')
        .select(['id', 'principal', 'tool', 'instance'])
        .where('ended_at', 'is', null)
        .where('state', '=', 'running')
        .where('instance', 'in', instances)
        .limit(limit)
        .execute(),
    insert: (call, ended) => insert(toRow(call, instance, ended)),
    insertWaiting: (call) => insert({ ...toRow(call, instance), state: 'waiting' }),
    start: (call) =>
      toStatement(
        database
          .updateTable('calls')
          .set({ state: 'running', instance, decision: call.decision, meta: toMetaText(call) })
          .where('id', '=', call.id)
          .where('state', '=', 'waiting'),
        1,
      ),
    end: (id, ended) => end({ id, columns: toEndColumns(ended) }),
    waitAgain: (id) =>
      toStatement(
        database
          .updateTable('calls')
          .set({ state: 'waiting' })
          .where('id', '=', id)
          .where('state', '=', 'running')
          .where('ended_at', 'is', null),
        1,
      ),
    endUnknown: (id, ended) =>
      toStatement(
        database
          .updateTable('calls')
          .set(toEndColumns(ended))
          .where('id', '=', id)
          .where('state', '=', 'unknown')
          .where('instance', '=', instance),
        1,
      ),
    endWaiting: (id, ended) =>
      toStatement(
        database.updateTable('calls').set(toEndColumns(ended)).where('id', '=', id).where('state', '=', 'waiting'),
        1,
      ),
    markLate: (id) => toStatement(database.updateTable('calls').set({ late: 1 }).where('id', '=', id)),
  }

  async function readWaits(rows: readonly CallsTable[]): Promise<Waits> {
    const ids = rows.map(({ id }) => id)
    if (ids.length === 0) return new Map()
    const entries = await database
      .selectFrom('audit')
      .select(['call', 'kind', 'at'])
      .where('call', 'in', ids)
      .where('kind', 'in', [...kindsOf('approval'), 'intent'])
      .execute()
    const waits = new Map<string, { approval?: number; intent?: number }>()
    for (const { call, kind, at } of entries) {
      const key = kind === 'intent' ? 'intent' : 'approval'
      if (call !== null) waits.set(call, { ...waits.get(call), [key]: Number(at) })
    }
    return waits
  }
}

/** For each call, the time of its approval request and the time of its intent. */
type Waits = ReadonlyMap<string, { readonly approval?: number; readonly intent?: number }>

function toRow(call: ResolvedCall, instance: string, end?: CallEnd & { readonly late?: boolean }): CallsTable {
  const shown = call.recorded ?? call
  return {
    id: call.id,
    method: call.method,
    tool: shown.tool,
    original: shown.original,
    server: call.server,
    scope: call.scope,
    connection: call.connection,
    principal: call.principal,
    principal_id: call.principalId,
    owner: call.owner ?? '',
    surface: call.surface,
    risk: call.risk,
    arguments: JSON.stringify(shown.arguments),
    meta: toMetaText(call),
    decision: call.decision,
    late: end?.late ? 1 : 0,
    started_at: call.startedAt,
    instance,
    ...(end ? toEndColumns(end) : running),
  }
}

function toMetaText(call: ResolvedCall): string | null {
  const meta = toRecordedMeta(call)
  return meta === undefined ? null : JSON.stringify(meta)
}

type EndColumns = Pick<
  CallsTable,
  | 'state'
  | 'error_code'
  | 'error_message'
  | 'resent'
  | 'ended_at'
  | 'duration_ms'
  | 'result_bytes'
  | 'given_bytes'
  | 'masked'
>

const running: EndColumns = {
  state: 'running',
  error_code: null,
  error_message: null,
  resent: 0,
  ended_at: null,
  duration_ms: null,
  result_bytes: null,
  given_bytes: null,
  masked: null,
}

function toEndColumns(end: RowEnd): EndColumns {
  return {
    state: end.state,
    error_code: end.error?.code ?? null,
    error_message: end.error?.message ?? null,
    resent: end.resent ? 1 : 0,
    ended_at: end.endedAt,
    duration_ms: end.durationMs ?? null,
    result_bytes: end.resultBytes ?? null,
    given_bytes: end.givenBytes ?? null,
    masked: end.masked ?? null,
  }
}

/** The time from the approval request until the call was sent, or until it ended without being sent. */
function toWaited({ ended_at }: CallsTable, wait: { approval?: number; intent?: number } | undefined) {
  const end = wait?.intent ?? ended_at
  return wait?.approval === undefined || end === null ? undefined : Math.max(0, end - wait.approval)
}

function toCall(row: CallsTable, waits: Waits): Call {
  return Call.parse({
    ...row,
    principalId: row.principal_id,
    owner: row.owner || undefined,
    arguments: parseJson(row.arguments),
    meta: row.meta === null ? undefined : parseJson(row.meta),
    error: row.error_code === null ? undefined : { code: row.error_code, message: row.error_message ?? '' },
    late: row.late === 1 ? true : undefined,
    resent: row.resent === 1 ? true : undefined,
    masked: row.masked ?? undefined,
    startedAt: toIso(row.started_at),
    endedAt: row.ended_at === null ? undefined : toIso(row.ended_at),
    durationMs: row.duration_ms ?? undefined,
    waitedMs: toWaited(row, waits.get(row.id)),
    cut: row.given_bytes === null ? undefined : { bytes: row.result_bytes ?? 0, given: row.given_bytes },
  })
}

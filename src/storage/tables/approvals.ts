import { sql } from 'kysely'
import { z } from 'zod'
import { Approval, ApprovalAnswer, ApprovalDrift, type ApprovalState } from '../../contract/approval.ts'
import { toIso } from '../../lib/clock.ts'
import { parseJson } from '../../lib/json.ts'
import { type ApprovalsTable, type Database, toStatement } from '../database.ts'
import { type Page, parseCursor, toPage, toPageLimit } from '../page.ts'
import type { Statement } from '../unit.ts'

export type ApprovalQuery = {
  readonly limit: number
  readonly cursor?: string
  readonly state?: ApprovalState
  /** Only approvals that these principals requested, and approvals that members of these groups may answer. */
  readonly of?: { readonly principalIds: readonly string[]; readonly groups: readonly string[] }
}

/** An approval to store: what people see, and the hashes that a grant given with the answer is tied to. */
export type NewApproval = Approval & {
  /** The id of the principal that made the call. */
  readonly principalId: string
  /** Hash of the tool's live definition. */
  readonly definition: string
  /** Hash of the arguments as they will be sent. */
  readonly argumentsHash: string
  /** Hash of `_meta` as it will be sent, without its trace context. */
  readonly metaHash?: string | undefined
  readonly drift?: ApprovalDrift | undefined
}

/** An approval that is waiting, or approved but not used, with the target of its call. */
export type OpenApproval = {
  readonly approval: StoredApproval
  readonly connection: string
  /** The server's own name of the tool. */
  readonly original: string
}

/** A stored approval. While it is live, an equal call joins it. */
export type StoredApproval = NewApproval & { readonly live: boolean }

export type StoredApprovals = {
  find(id: string): Promise<StoredApproval | undefined>
  /** The approval that an equal call of the same principal joins. `hash` is the hash of the call. */
  findLive(principalId: string, hash: string): Promise<StoredApproval | undefined>
  /** Newest first. */
  list(query: ApprovalQuery): Promise<Page<Approval>>
  /** Open approvals that have expired. */
  overdue(now: number, limit: number): Promise<StoredApproval[]>
  /** The open approvals for tools of one server. */
  openOf(server: string): Promise<OpenApproval[]>
  /** The open approvals that these principals requested, or that users with these names have answered. */
  openBy(principalIds: readonly string[], answeredBy: readonly string[]): Promise<StoredApproval[]>
  countWaiting(principalId: string): Promise<number>
  /** How many approvals this principal requested for a tool before a time, and how many were approved. */
  countBefore(query: {
    principalId: string
    tool: string
    before: string
  }): Promise<{ requested: number; approved: number }>
  /**
   * Steps of units. Each must change exactly one row, or its unit is refused. So of several concurrent changes one
   * succeeds.
   */
  insert(approval: NewApproval, instance: string): Statement
  answer(approval: StoredApproval, answers: readonly ApprovalAnswer[], next: Answered): Statement
  use(id: string, now: number): Statement
  /** Returns the approval to `approved`, for a call that was certainly not sent. */
  release(id: string): Statement
  /** Expects the state in which the approval was read: `waiting` becomes `expired`, `approved` becomes `lapsed`. */
  expire(approval: Pick<StoredApproval, 'id' | 'state'>, now: number): Statement
  withdraw(id: string, why: string, now: number): Statement
  /** Records that the caller has the outcome. Then the same call is a new call. */
  deliver(id: string): Statement
}

export type Answered = {
  readonly state: 'waiting' | 'approved' | 'denied'
  readonly at: number
  readonly grant?: string
}

const Cursor = z.tuple([z.number(), z.string()])
const Answers = z.array(ApprovalAnswer)

export function createStoredApprovals(database: Database): StoredApprovals {
  const update = () => database.updateTable('approvals')

  return {
    async find(id) {
      const row = await database.selectFrom('approvals').selectAll().where('id', '=', id).executeTakeFirst()
      return row && toStored(row)
    },
    async findLive(principalId, hash) {
      const live = toLive(principalId, hash)
      const row = await database.selectFrom('approvals').selectAll().where('live', '=', live).executeTakeFirst()
      return row && toStored(row)
    },
    async list({ cursor, ...query }) {
      const limit = toPageLimit(query.limit)
      let rows = database.selectFrom('approvals').selectAll()
      if (query.state !== undefined) rows = rows.where('state', '=', query.state)
      const { of } = query
      if (of !== undefined) {
        rows = rows.where(({ eb, or }) =>
          or([
            eb('principal_id', 'in', [...of.principalIds, '']),
            ...of.groups.map(
              (group) => sql<boolean>`approvers like ${toLike(group)} escape '!' and approvers not like '%"owner"%'`,
            ),
          ]),
        )
      }
      if (cursor !== undefined) {
        const [at, id] = parseCursor(cursor, Cursor)
        rows = rows.where(({ eb, refTuple, tuple }) => eb(refTuple('requested_at', 'id'), '<', tuple(at, id)))
      }
      const found = await rows
        .orderBy('requested_at', 'desc')
        .orderBy('id', 'desc')
        .limit(limit + 1)
        .execute()
      return toPage(found, limit, toApproval, (row) => [row.requested_at, row.id])
    },
    async overdue(now, limit) {
      const rows = await database
        .selectFrom('approvals')
        .selectAll()
        .where('state', 'in', ['waiting', 'approved'])
        .where('expires_at', '<=', now)
        .limit(limit)
        .execute()
      return rows.map(toStored)
    },
    async openOf(server) {
      const rows = await database
        .selectFrom('approvals')
        .innerJoin('calls', 'calls.id', 'approvals.call')
        .selectAll('approvals')
        .select(['calls.connection', 'calls.original'])
        .where('approvals.state', 'in', ['waiting', 'approved'])
        .where('approvals.server', '=', server)
        .execute()
      return rows.map(({ connection, original, ...row }) => ({ approval: toStored(row), connection, original }))
    },
    async openBy(principalIds, answeredBy) {
      const rows = await database
        .selectFrom('approvals')
        .selectAll()
        .where('state', 'in', ['waiting', 'approved'])
        .where(({ eb, or }) => or([eb('principal_id', 'in', [...principalIds, '']), eb('answers', '!=', '[]')]))
        .execute()
      return rows.map(toStored).filter(({ principalId, answers }) => {
        return principalIds.includes(principalId) || answers.some(({ by }) => answeredBy.includes(by))
      })
    },
    async countWaiting(principalId) {
      const { count } = await database
        .selectFrom('approvals')
        .select(({ fn }) => fn.countAll<number>().as('count'))
        .where('principal_id', '=', principalId)
        .where('state', '=', 'waiting')
        .executeTakeFirstOrThrow()
      return Number(count)
    },
    async countBefore({ principalId, tool, before }) {
      const rows = await database
        .selectFrom('approvals')
        .select('state')
        .select(({ fn }) => fn.countAll<number>().as('count'))
        .where('principal_id', '=', principalId)
        .where('tool', '=', tool)
        .where('requested_at', '<', Date.parse(before))
        .groupBy('state')
        .execute()
      const sum = (states: readonly string[]) =>
        rows.reduce((total, row) => (states.includes(row.state) ? total + Number(row.count) : total), 0)
      return { requested: sum(rows.map(({ state }) => state)), approved: sum(['approved', 'used', 'lapsed']) }
    },
    insert: (approval, instance) => toStatement(database.insertInto('approvals').values(toRow(approval, instance)), 1),
    answer: (approval, answers, { state, at, grant }) =>
      toStatement(
        update()
          .set({
            state,
            answers: JSON.stringify(answers),
            grant_id: grant ?? null,
            ended_at: state === 'denied' ? at : null,
          })
          .where('id', '=', approval.id)
          .where('state', '=', 'waiting')
          .where('expires_at', '>', at)
          // Does not overwrite an answer that another person gave after the approval was read.
          .where('answers', '=', JSON.stringify(approval.answers)),
        1,
      ),
    use: (id, now) =>
      toStatement(
        update()
          .set({ state: 'used', ended_at: now })
          .where('id', '=', id)
          .where('state', '=', 'approved')
          .where('expires_at', '>', now),
        1,
      ),
    release: (id) =>
      toStatement(
        update().set({ state: 'approved', ended_at: null }).where('id', '=', id).where('state', '=', 'used'),
        1,
      ),
    expire: ({ id, state }, now) =>
      toStatement(
        update()
          .set({ state: state === 'approved' ? 'lapsed' : 'expired', ended_at: now, live: null })
          .where('id', '=', id)
          .where('state', '=', state === 'approved' ? 'approved' : 'waiting')
          .where('expires_at', '<=', now),
        1,
      ),
    withdraw: (id, why, now) =>
      toStatement(
        update()
          .set({ state: 'withdrawn', withdrawn_because: why, ended_at: now, live: null })
          .where('id', '=', id)
          .where('state', 'in', ['waiting', 'approved']),
        1,
      ),
    deliver: (id) => toStatement(update().set({ live: null }).where('id', '=', id)),
  }
}

/** Group names contain no quotes or other characters that JSON escapes. */
function toLike(group: string): string {
  return `%"group:${group.replace(/[!%_]/g, '!$&')}"%`
}

function toLive(principalId: string, hash: string): string {
  return `${hash} ${principalId}`
}

function toRow(approval: NewApproval, instance: string): ApprovalsTable {
  return {
    id: approval.id,
    live: toLive(approval.principalId, approval.hash),
    call: approval.call,
    principal: approval.principal,
    principal_id: approval.principalId,
    owner: approval.owner ?? null,
    tool: approval.tool,
    server: approval.server,
    server_title: approval.serverTitle ?? null,
    title: approval.title,
    description: approval.description ?? null,
    risk: approval.risk,
    arguments: JSON.stringify(approval.arguments),
    input: approval.input === undefined ? null : JSON.stringify(approval.input),
    meta: approval.meta === undefined ? null : JSON.stringify(approval.meta),
    meta_hash: approval.metaHash ?? null,
    hash: approval.hash,
    definition: approval.definition,
    arguments_hash: approval.argumentsHash,
    reason: approval.reason,
    approvers: JSON.stringify(approval.approvers),
    state: approval.state,
    answers: JSON.stringify(approval.answers),
    grant_id: approval.grant ?? null,
    requested_at: Date.parse(approval.requestedAt),
    expires_at: Date.parse(approval.expiresAt),
    ended_at: null,
    instance,
    drift: approval.drift === undefined ? null : JSON.stringify(approval.drift),
    withdrawn_because: null,
  }
}

function toStored(row: ApprovalsTable): StoredApproval {
  return {
    ...toApproval(row),
    principalId: row.principal_id,
    definition: row.definition,
    argumentsHash: row.arguments_hash,
    metaHash: row.meta_hash ?? undefined,
    live: row.live !== null,
    ...(row.drift !== null && { drift: ApprovalDrift.parse(parseJson(row.drift)) }),
  }
}

function toApproval(row: ApprovalsTable): Approval {
  return Approval.parse({
    id: row.id,
    state: row.state,
    call: row.call,
    tool: row.tool,
    server: row.server,
    serverTitle: row.server_title ?? undefined,
    title: row.title,
    description: row.description ?? undefined,
    principal: row.principal,
    principalId: row.principal_id,
    owner: row.owner ?? undefined,
    arguments: parseJson(row.arguments),
    input: row.input === null ? undefined : parseJson(row.input),
    meta: row.meta === null ? undefined : parseJson(row.meta),
    hash: row.hash,
    risk: row.risk,
    reason: row.reason,
    approvers: parseJson(row.approvers),
    requestedAt: toIso(row.requested_at),
    expiresAt: toIso(row.expires_at),
    answers: Answers.parse(parseJson(row.answers)),
    grant: row.grant_id ?? undefined,
    withdrawnBecause: row.withdrawn_because ?? undefined,
    endedAt: row.ended_at === null ? undefined : toIso(row.ended_at),
  })
}

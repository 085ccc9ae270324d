import { sql } from 'kysely'
import { z } from 'zod'
import { Approval, ApprovalAnswer, ApprovalDrift, type ApprovalState } from '../../contract/approval.ts'
import { toIso } from '../../lib/clock.ts'
import { parseJson } from '../../lib/json.ts'
import { type Database, type QuestionsTable, toStatement } from '../database.ts'
import { type Page, parseCursor, toPage, toPageLimit } from '../page.ts'
import type { Statement } from '../unit.ts'

export type QuestionQuery = {
  readonly limit: number
  readonly cursor?: string
  readonly state?: ApprovalState
  /** Only questions of these identities, and those that one of these groups is asked. */
  readonly of?: { readonly principalIds: readonly string[]; readonly groups: readonly string[] }
}

/** What people see of a question, and what a grant that is given with the answer is bound to. */
export type NewQuestion = Approval & {
  /** The identity that asked. */
  readonly principalId: string
  /** Hash of the tool's live definition. */
  readonly definition: string
  /** Hash of the arguments as they will be sent. */
  readonly argumentsHash: string
  /** Hash of `_meta` as it will be sent, without its trace context. */
  readonly metaHash?: string | undefined
  readonly drift?: ApprovalDrift | undefined
}

/** A question that still may run, and what its call is for. */
export type OpenQuestion = {
  readonly question: StoredQuestion
  readonly connection: string
  /** The server's own name of the tool. */
  readonly original: string
}

/** A question as it is kept; an equal call joins it while it is live. */
export type StoredQuestion = NewQuestion & { readonly live: boolean }

export type QuestionStore = {
  find(id: string): Promise<StoredQuestion | undefined>
  /** The question that an equal call of the same principal joins. */
  findLive(principalId: string, binding: string): Promise<StoredQuestion | undefined>
  /** Newest first. */
  list(query: QuestionQuery): Promise<Page<Approval>>
  /** Those whose time is up and that nobody has closed yet. */
  overdue(now: number, limit: number): Promise<StoredQuestion[]>
  /** Those of one server that wait, or are approved and not used. */
  openOf(server: string): Promise<OpenQuestion[]>
  /** Those that wait, or are approved and not used: asked by these identities, or answered by users with these names. */
  openBy(principalIds: readonly string[], answeredBy: readonly string[]): Promise<StoredQuestion[]>
  countWaiting(principalId: string): Promise<number>
  /** How often this principal asked for a tool before, and how often a person agreed. */
  countBefore(query: {
    principalId: string
    tool: string
    before: string
  }): Promise<{ asked: number; approved: number }>
  /** Steps of units. Each changes one row, or its unit does not stand: of several at once exactly one counts. */
  insert(question: NewQuestion, instance: string): Statement
  answer(question: StoredQuestion, answers: readonly ApprovalAnswer[], next: Answered): Statement
  use(id: string, now: number): Statement
  /** Certainly nothing was sent: it is approved and not used, as before. */
  release(id: string): Statement
  /** From the state in which it was read: what was approved and not used lapses. */
  expire(question: Pick<StoredQuestion, 'id' | 'state'>, now: number): Statement
  withdraw(id: string, why: string, now: number): Statement
  /** Whoever asked has the outcome: the same call is a new one from now on. */
  deliver(id: string): Statement
}

export type Answered = {
  readonly state: 'waiting' | 'approved' | 'denied'
  readonly at: number
  readonly grant?: string
}

const Cursor = z.tuple([z.number(), z.string()])
const Answers = z.array(ApprovalAnswer)

export function createQuestionStore(database: Database): QuestionStore {
  const update = () => database.updateTable('questions')

  return {
    async find(id) {
      const row = await database.selectFrom('questions').selectAll().where('id', '=', id).executeTakeFirst()
      return row && toQuestion(row)
    },
    async findLive(principalId, binding) {
      const live = toLive(principalId, binding)
      const row = await database.selectFrom('questions').selectAll().where('live', '=', live).executeTakeFirst()
      return row && toQuestion(row)
    },
    async list({ cursor, ...query }) {
      const limit = toPageLimit(query.limit)
      let rows = database.selectFrom('questions').selectAll()
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
        rows = rows.where(({ eb, refTuple, tuple }) => eb(refTuple('asked_at', 'id'), '<', tuple(at, id)))
      }
      const found = await rows
        .orderBy('asked_at', 'desc')
        .orderBy('id', 'desc')
        .limit(limit + 1)
        .execute()
      return toPage(found, limit, toApproval, (row) => [row.asked_at, row.id])
    },
    async overdue(now, limit) {
      const rows = await database
        .selectFrom('questions')
        .selectAll()
        .where('state', 'in', ['waiting', 'approved'])
        .where('expires_at', '<=', now)
        .limit(limit)
        .execute()
      return rows.map(toQuestion)
    },
    async openOf(server) {
      const rows = await database
        .selectFrom('questions')
        .innerJoin('calls', 'calls.id', 'questions.call')
        .selectAll('questions')
        .select(['calls.connection', 'calls.original'])
        .where('questions.state', 'in', ['waiting', 'approved'])
        .where('questions.server', '=', server)
        .execute()
      return rows.map(({ connection, original, ...row }) => ({ question: toQuestion(row), connection, original }))
    },
    async openBy(principalIds, answeredBy) {
      const rows = await database
        .selectFrom('questions')
        .selectAll()
        .where('state', 'in', ['waiting', 'approved'])
        .where(({ eb, or }) => or([eb('principal_id', 'in', [...principalIds, '']), eb('answers', '!=', '[]')]))
        .execute()
      return rows.map(toQuestion).filter(({ principalId, answers }) => {
        return principalIds.includes(principalId) || answers.some(({ by }) => answeredBy.includes(by))
      })
    },
    async countWaiting(principalId) {
      const { count } = await database
        .selectFrom('questions')
        .select(({ fn }) => fn.countAll<number>().as('count'))
        .where('principal_id', '=', principalId)
        .where('state', '=', 'waiting')
        .executeTakeFirstOrThrow()
      return Number(count)
    },
    async countBefore({ principalId, tool, before }) {
      const rows = await database
        .selectFrom('questions')
        .select('state')
        .select(({ fn }) => fn.countAll<number>().as('count'))
        .where('principal_id', '=', principalId)
        .where('tool', '=', tool)
        .where('asked_at', '<', Date.parse(before))
        .groupBy('state')
        .execute()
      const sum = (states: readonly string[]) =>
        rows.reduce((total, row) => (states.includes(row.state) ? total + Number(row.count) : total), 0)
      return { asked: sum(rows.map(({ state }) => state)), approved: sum(['approved', 'used', 'lapsed']) }
    },
    insert: (question, instance) => toStatement(database.insertInto('questions').values(toRow(question, instance)), 1),
    answer: (question, answers, { state, at, grant }) =>
      toStatement(
        update()
          .set({
            state,
            answers: JSON.stringify(answers),
            grant_id: grant ?? null,
            ended_at: state === 'denied' ? at : null,
          })
          .where('id', '=', question.id)
          .where('state', '=', 'waiting')
          .where('expires_at', '>', at)
          // Somebody else's answer in between must not be written over.
          .where('answers', '=', JSON.stringify(question.answers)),
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

/** Names of groups hold neither quotes nor anything that JSON writes in another way. */
function toLike(group: string): string {
  return `%"group:${group.replace(/[!%_]/g, '!$&')}"%`
}

function toLive(principalId: string, binding: string): string {
  return `${binding} ${principalId}`
}

function toRow(question: NewQuestion, instance: string): QuestionsTable {
  return {
    id: question.id,
    live: toLive(question.principalId, question.hash),
    call: question.call,
    principal: question.principal,
    principal_id: question.principalId,
    owner: question.owner ?? null,
    tool: question.tool,
    server: question.server,
    title: question.title,
    description: question.description ?? null,
    risk: question.risk,
    arguments: JSON.stringify(question.arguments),
    input: question.input === undefined ? null : JSON.stringify(question.input),
    meta: question.meta === undefined ? null : JSON.stringify(question.meta),
    meta_hash: question.metaHash ?? null,
    binding: question.hash,
    definition: question.definition,
    arguments_hash: question.argumentsHash,
    reason: question.reason,
    approvers: JSON.stringify(question.approvers),
    state: question.state,
    answers: JSON.stringify(question.answers),
    grant_id: question.grant ?? null,
    asked_at: Date.parse(question.askedAt),
    expires_at: Date.parse(question.expiresAt),
    ended_at: null,
    instance,
    drift: question.drift === undefined ? null : JSON.stringify(question.drift),
    withdrawn_because: null,
  }
}

function toQuestion(row: QuestionsTable): StoredQuestion {
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

function toApproval(row: QuestionsTable): Approval {
  return Approval.parse({
    id: row.id,
    state: row.state,
    call: row.call,
    tool: row.tool,
    server: row.server,
    title: row.title,
    description: row.description ?? undefined,
    principal: row.principal,
    principalId: row.principal_id,
    owner: row.owner ?? undefined,
    arguments: parseJson(row.arguments),
    input: row.input === null ? undefined : parseJson(row.input),
    meta: row.meta === null ? undefined : parseJson(row.meta),
    hash: row.binding,
    risk: row.risk,
    reason: row.reason,
    approvers: parseJson(row.approvers),
    askedAt: toIso(row.asked_at),
    expiresAt: toIso(row.expires_at),
    answers: Answers.parse(parseJson(row.answers)),
    grant: row.grant_id ?? undefined,
    withdrawnBecause: row.withdrawn_because ?? undefined,
    endedAt: row.ended_at === null ? undefined : toIso(row.ended_at),
  })
}

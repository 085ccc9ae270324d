import { sql } from 'kysely'
import { z } from 'zod'
import type { Approval, ApprovalAnswer, ApprovalDrift } from '../../contract/approval.ts'
import { AuditEntry, type AuditKind } from '../../contract/audit.ts'
import type { CallState } from '../../contract/call.ts'
import type { Grant } from '../../contract/grant.ts'
import { type CallEnd, type ResolvedCall, toRecordedMeta } from '../../contract/permit.ts'
import { toIso } from '../../lib/clock.ts'
import { matchesGlob } from '../../lib/glob.ts'
import { parseJson } from '../../lib/json.ts'
import type { AuditTable, Database } from '../database.ts'
import { type Page, parseCursor, toCursor, toPage, toPageLimit } from '../page.ts'
import type { NewEntry } from '../unit.ts'

/** A change that a principal made: who, to what, and the details. */
export type Change = {
  readonly principal: string
  readonly subject: string
  readonly body: Readonly<Record<string, unknown>>
}

export type AuditFilter = {
  readonly principal?: string
  /** The user that the call was made for. */
  readonly owner?: string
  /** A tool or a changed object, or a glob on its name. */
  readonly subject?: string
  readonly server?: string
  readonly kind?: AuditKind
  readonly call?: string
  /** The current or final state of the entry's call. */
  readonly state?: CallState
  /** Entries at or after `since` and before `until`. */
  readonly since?: number
  readonly until?: number
}

export type AuditQuery = AuditFilter & { readonly limit: number; readonly cursor?: string }

export type AuditStore = {
  find(instance: string, sequence: number): Promise<AuditEntry | undefined>
  /** Newest first. A page may be short or empty although there is a next page. */
  list(query: AuditQuery): Promise<Page<AuditEntry>>
}

const Cursor = z.tuple([z.number(), z.string(), z.number()])
type Key = z.infer<typeof Cursor>

/** Rows per statement and statements per page. The limits keep a search for rare entries from blocking other queries. */
const windowRows = 4000
const mostWindows = 25

export function createAuditStore(database: Database): AuditStore {
  return {
    async find(instance, sequence) {
      const row = await database
        .selectFrom('audit')
        .selectAll()
        .where('instance', '=', instance)
        .where('sequence', '=', sequence)
        .executeTakeFirst()
      return row && toAuditEntry(row)
    },
    async list({ cursor, limit: wanted, ...filter }) {
      const limit = toPageLimit(wanted)
      if (filter.call !== undefined) return listOfCall(filter, limit, cursor)
      const found: AuditTable[] = []
      let after = cursor === undefined ? undefined : parseCursor(cursor, Cursor)
      for (let window = 0; window < mostWindows; window++) {
        const bound = await findBound(filter, after)
        const rows = await select(filter, { after, bound, limit: limit + 1 - found.length })
        found.push(...rows.filter((row) => fits(row, filter)))
        if (found.length > limit || bound === undefined) return toPage(found, limit, toAuditEntry, toKey)
        // LIKE may have returned rows that `fits` rejects, so this window may have rows that were not read yet.
        const last = rows.at(-1)
        after = rows.length > limit - found.length && last ? toKey(last) : bound
      }
      return { items: found.map(toAuditEntry), ...(after && { next: toCursor(after) }) }
    },
  }

  /** A call has few entries, and there is an index on the call. */
  async function listOfCall(filter: AuditFilter, limit: number, cursor?: string): Promise<Page<AuditEntry>> {
    const after = cursor === undefined ? undefined : parseCursor(cursor, Cursor)
    const rows = await select(filter, { after, limit: limit + 1 })
    return toPage(rows, limit, toAuditEntry, toKey)
  }

  /** The last row of a window, read from the index only; undefined if the window reaches the end of the audit. */
  async function findBound({ since, until }: AuditFilter, after: Key | undefined): Promise<Key | undefined> {
    let rows = database.selectFrom('audit').select(['at', 'instance', 'sequence'])
    if (since !== undefined) rows = rows.where('at', '>=', since)
    if (until !== undefined) rows = rows.where('at', '<', until)
    if (after) {
      rows = rows.where(({ eb, refTuple, tuple }) => eb(refTuple('at', 'instance', 'sequence'), '<', tuple(...after)))
    }
    const bound = await rows
      .orderBy('at', 'desc')
      .orderBy('instance', 'desc')
      .orderBy('sequence', 'desc')
      .offset(windowRows - 1)
      .limit(1)
      .executeTakeFirst()
    return bound && toKey(bound)
  }

  function select(filter: AuditFilter, part: { after?: Key; bound?: Key; limit: number }): Promise<AuditTable[]> {
    const { after, bound } = part
    let rows = database.selectFrom('audit').selectAll('audit')
    if (filter.principal !== undefined) rows = rows.where('audit.principal', '=', filter.principal)
    if (filter.subject !== undefined) {
      rows = rows.where(sql<boolean>`audit.subject like ${toLike(filter.subject)} escape '!'`)
    }
    if (filter.kind !== undefined) rows = rows.where('audit.kind', 'in', kindsOf(filter.kind))
    if (filter.call !== undefined) rows = rows.where('audit.call', '=', filter.call)
    if (filter.since !== undefined) rows = rows.where('audit.at', '>=', filter.since)
    if (filter.until !== undefined) rows = rows.where('audit.at', '<', filter.until)
    const { owner, server, state } = filter
    if (owner !== undefined || server !== undefined || state !== undefined) {
      rows = rows.where((entry) => {
        let calls = entry.selectFrom('calls').select('calls.id').whereRef('calls.id', '=', 'audit.call')
        if (owner !== undefined) calls = calls.where('calls.owner', '=', owner)
        if (server !== undefined) calls = calls.where('calls.server', '=', server)
        if (state !== undefined) calls = calls.where('calls.state', '=', state)
        return entry.exists(calls)
      })
    }
    if (after) {
      rows = rows.where(({ eb, refTuple, tuple }) =>
        eb(refTuple('audit.at', 'audit.instance', 'audit.sequence'), '<', tuple(...after)),
      )
    }
    if (bound) {
      rows = rows.where(({ eb, refTuple, tuple }) =>
        eb(refTuple('audit.at', 'audit.instance', 'audit.sequence'), '>=', tuple(...bound)),
      )
    }
    return rows
      .orderBy('audit.at', 'desc')
      .orderBy('audit.instance', 'desc')
      .orderBy('audit.sequence', 'desc')
      .limit(part.limit)
      .execute()
  }
}

function toKey(row: Pick<AuditTable, 'at' | 'instance' | 'sequence'>): Key {
  return [row.at, row.instance, row.sequence]
}

/** LIKE treats upper and lower case differently in the two databases. So it only narrows the search, and `fits` decides. */
function toLike(glob: string): string {
  return glob.replace(/[!%_]/g, '!$&').replaceAll('*', '%').replaceAll('?', '_')
}

function fits(row: AuditTable, { subject }: AuditFilter): boolean {
  return subject === undefined || matchesGlob(subject, row.subject)
}

export function toIntentEntry(call: ResolvedCall, at: number): NewEntry {
  return { ...toCallEntry('intent', call, at), body: JSON.stringify(toIntentBody(call)) }
}

/** `waiting`: nothing was sent in this attempt, and the call waits again. */
export function toOutcomeEntry(call: ResolvedCall, end: Attempted): NewEntry {
  return { ...toCallEntry('outcome', call, end.endedAt), body: JSON.stringify(toOutcomeBody(end)) }
}

/** The outcome of a call that another instance had closed as `unknown`, because this instance seemed to be dead. */
export function toLateEntry(call: ResolvedCall, end: CallEnd): NewEntry {
  const body = JSON.stringify({ ...toOutcomeBody(end), was: 'unknown' })
  return { ...toCallEntry('late-outcome', call, end.endedAt), body }
}

/** A refused call has no intent entry, so its single entry also contains the request. */
export function toRefusalEntry(call: ResolvedCall, end: CallEnd): NewEntry {
  const body = JSON.stringify({ ...toIntentBody(call), ...toOutcomeBody(end) })
  return { ...toCallEntry('outcome', call, end.endedAt), body }
}

/** Refused calls of one principal that are counted in one entry instead of being recorded one by one. */
export type RefusalCount = {
  readonly principal: string
  readonly owner?: string
  /** The tool, or the server for other kinds of names, or `unknown names` for names that do not exist. */
  readonly subject: string
  readonly method: string
  readonly server: string
  readonly code: string
  readonly count: number
  readonly firstAt: number
  readonly lastAt: number
}

/** The stored kinds for a kind: earlier versions wrote `question` for `approval`. */
export function kindsOf(kind: AuditKind): AuditKind[] {
  return kind === 'approval' ? ['approval', 'question'] : [kind]
}

export function toRefusalsEntry(refusals: RefusalCount, at: number): NewEntry {
  const { principal, subject, owner, method, server, code, count, firstAt, lastAt } = refusals
  const body = { count, code, method, server, owner, firstAt: toIso(firstAt), lastAt: toIso(lastAt) }
  return { at, kind: 'refusals', call: null, principal, subject, body: JSON.stringify(body) }
}

export function toChangeEntry({ principal, subject, body }: Change, at: number): NewEntry {
  return { at, kind: 'change', call: null, principal, subject, body: JSON.stringify(body) }
}

export function toChangeOutcomeEntry({ principal, subject, body }: Change, at: number): NewEntry {
  return { at, kind: 'change-outcome', call: null, principal, subject, body: JSON.stringify(body) }
}

/** The request for an approval, with everything that the approver sees. */
export function toRequestEntry(approval: Approval & { drift?: ApprovalDrift | undefined }, at: number): NewEntry {
  const { id, title, arguments: args, input, meta, hash, risk, reason, approvers, expiresAt, drift } = approval
  const body = { approval: id, title, arguments: args, input, meta, hash, risk, reason, approvers, expiresAt, drift }
  return { ...toApprovalEntry('approval', approval, approval.principal), at, body: JSON.stringify(body) }
}

export function toAnswerEntry(approval: Approval, answer: ApprovalAnswer, grant: Grant | undefined): NewEntry {
  const { by, verdict, reason, at } = answer
  const body = { approval: approval.id, verdict, reason, hash: approval.hash, grant }
  const entry = toApprovalEntry('answer', approval, by.includes(':') ? by : `user:${by}`)
  return { ...entry, at: Date.parse(at), body: JSON.stringify(body) }
}

function toApprovalEntry(kind: 'approval' | 'answer', { call, tool }: Approval, principal: string) {
  return { kind, call, principal, subject: tool }
}

type CalledBy = {
  readonly id: string
  readonly principal: string
  readonly tool: string
  readonly recorded?: { readonly tool: string }
}

export function toCallEntry(
  kind: 'intent' | 'outcome' | 'late-outcome',
  call: CalledBy,
  at: number,
): Omit<NewEntry, 'body'> {
  return { at, kind, call: call.id, principal: call.principal, subject: (call.recorded ?? call).tool }
}

function toIntentBody(call: ResolvedCall) {
  const { server, scope, connection, owner, risk, decision, surface } = call
  const { tool, original, arguments: args } = call.recorded ?? call
  const meta = toRecordedMeta(call)
  return { tool, original, server, scope, connection, owner, arguments: args, meta, risk, decision, surface }
}

type Attempted = Omit<CallEnd, 'state'> & { readonly state: CallEnd['state'] | 'waiting' }

export function toOutcomeBody({ state, error, durationMs, resultBytes, givenBytes, masked }: Partial<Attempted>) {
  const body = { state, error, durationMs, resultBytes, ...(masked && { masked }) }
  if (givenBytes === undefined) return body
  return { ...body, cut: { bytes: resultBytes, given: givenBytes } }
}

export function toAuditEntry(row: AuditTable): AuditEntry {
  return AuditEntry.parse({ ...row, at: toIso(row.at), call: row.call ?? undefined, body: parseJson(row.body) })
}

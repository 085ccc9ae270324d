import { z } from 'zod'
import { AuditEntry, type AuditKind } from '../contract/audit.ts'
import type { CallEnd, ResolvedCall } from '../contract/permit.ts'
import { toIso } from '../lib/clock.ts'
import { parseJson } from '../lib/json.ts'
import type { AuditTable, Database } from './database.ts'
import { type Page, parseCursor, toPage, toPageLimit } from './page.ts'
import type { NewEntry } from './unit.ts'

/** Something people did to the gateway: who, to what, and the facts. */
export type Change = {
  readonly principal: string
  readonly subject: string
  readonly body: Readonly<Record<string, unknown>>
}

export type AuditQuery = {
  readonly limit: number
  readonly cursor?: string
  readonly principal?: string
  readonly subject?: string
  readonly kind?: AuditKind
  readonly call?: string
}

export type AuditStore = {
  find(instance: string, sequence: number): Promise<AuditEntry | undefined>
  /** Newest first. */
  list(query: AuditQuery): Promise<Page<AuditEntry>>
}

const Cursor = z.tuple([z.number(), z.string(), z.number()])

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
    async list({ cursor, ...query }) {
      const limit = toPageLimit(query.limit)
      let rows = database.selectFrom('audit').selectAll()
      if (query.principal !== undefined) rows = rows.where('principal', '=', query.principal)
      if (query.subject !== undefined) rows = rows.where('subject', '=', query.subject)
      if (query.kind !== undefined) rows = rows.where('kind', '=', query.kind)
      if (query.call !== undefined) rows = rows.where('call', '=', query.call)
      if (cursor !== undefined) {
        const [at, instance, sequence] = parseCursor(cursor, Cursor)
        rows = rows.where(({ eb, refTuple, tuple }) =>
          eb(refTuple('at', 'instance', 'sequence'), '<', tuple(at, instance, sequence)),
        )
      }
      const found = await rows
        .orderBy('at', 'desc')
        .orderBy('instance', 'desc')
        .orderBy('sequence', 'desc')
        .limit(limit + 1)
        .execute()
      return toPage(found, limit, toAuditEntry, (row) => [row.at, row.instance, row.sequence])
    },
  }
}

export function toIntentEntry(call: ResolvedCall, at: number): NewEntry {
  return { ...toCallEntry('intent', call, at), body: JSON.stringify(toIntentBody(call)) }
}

export function toOutcomeEntry(call: ResolvedCall, end: CallEnd): NewEntry {
  return { ...toCallEntry('outcome', call, end.endedAt), body: JSON.stringify(toOutcomeBody(end)) }
}

/** A refused call has no intent, so the one entry says what was asked for as well. */
export function toRefusalEntry(call: ResolvedCall, end: CallEnd): NewEntry {
  const body = JSON.stringify({ ...toIntentBody(call), ...toOutcomeBody(end) })
  return { ...toCallEntry('outcome', call, end.endedAt), body }
}

export function toChangeEntry({ principal, subject, body }: Change, at: number): NewEntry {
  return { at, kind: 'change', call: null, principal, subject, body: JSON.stringify(body) }
}

type CalledBy = { readonly id: string; readonly principal: string; readonly tool: string }

export function toCallEntry(kind: 'intent' | 'outcome', call: CalledBy, at: number): Omit<NewEntry, 'body'> {
  return { at, kind, call: call.id, principal: call.principal, subject: call.tool }
}

function toIntentBody(call: ResolvedCall) {
  const { tool, original, server, scope, connection, risk, decision, surface } = call
  return { tool, original, server, scope, connection, arguments: call.arguments, risk, decision, surface }
}

export function toOutcomeBody({ state, error, durationMs, resultBytes }: Partial<CallEnd>) {
  return { state, error, durationMs, resultBytes }
}

function toAuditEntry(row: AuditTable): AuditEntry {
  return AuditEntry.parse({ ...row, at: toIso(row.at), call: row.call ?? undefined, body: parseJson(row.body) })
}

import { z } from 'zod'
import { Grant } from '../../contract/grant.ts'
import { toIso } from '../../lib/clock.ts'
import { parseJson } from '../../lib/json.ts'
import { compiledOnce, type Database, type GrantsTable, toStatement } from '../database.ts'
import { type Page, parseCursor, toPage, toPageLimit } from '../page.ts'
import type { Statement } from '../unit.ts'
import type { Writer } from '../writer.ts'
import { type Change, toChangeEntry } from './audit.ts'

export type GrantQuery = {
  readonly limit: number
  readonly cursor?: string
  readonly principal?: string
  /** Only grants for the principals with these ids. */
  readonly of?: readonly string[]
}

export type GrantStore = {
  /** Grants that can still be used: not revoked, not expired, not used up. */
  active(): Promise<Grant[]>
  find(id: string): Promise<Grant | undefined>
  /** Newest first. */
  list(query: GrantQuery): Promise<Page<Grant>>
  add(grant: Grant, change: Change): Promise<void>
  /** False if the grant was already revoked or does not exist. */
  revoke(id: string, by: string, change: Change): Promise<boolean>
  /** A step of a removal: revokes the grants for these principals and scopes, and the grants that these users gave. */
  revokeAll(of: { readonly keys: readonly string[]; readonly giverIds: readonly string[] }, by: string): Statement
  /** A step of a claim: uses one call of the budget. The unit is refused if the grant cannot be used. */
  spend(id: string): Statement
  /** A step of a call's outcome: the call was not sent, so its use is refunded. */
  refund(id: string): Statement
  /** Inserts a grant as a step of a unit, for a grant that is given with an answer. */
  insert(grant: Grant): Statement
}

type GrantStoreParts = { database: Database; writer: Writer; now(): number }

const Cursor = z.tuple([z.number(), z.string()])

export function createGrantStore({ database, writer, now }: GrantStoreParts): GrantStore {
  const spend = compiledOnce(
    ({ id, at }: { id: string; at: number }) =>
      database
        .updateTable('grants')
        .set((grant) => ({ used: grant('used', '+', 1), last_used_at: at }))
        .where('id', '=', id)
        .where('revoked_at', 'is', null)
        .where('expires_at', '>', at)
        .whereRef('used', '<', 'budget'),
    ({ id, at }) => [1, at, id, at],
    1,
  )
  const insert = (grant: Grant) => toStatement(database.insertInto('grants').values(toRow(grant)), 1)

  return {
    async active() {
      const rows = await database
        .selectFrom('grants')
        .selectAll()
        .where('revoked_at', 'is', null)
        .where('expires_at', '>', now())
        .whereRef('used', '<', 'budget')
        .orderBy('given_at')
        .orderBy('id')
        .execute()
      return rows.map(toGrant)
    },
    async find(id) {
      const row = await database.selectFrom('grants').selectAll().where('id', '=', id).executeTakeFirst()
      return row && toGrant(row)
    },
    async list({ cursor, ...query }) {
      const limit = toPageLimit(query.limit)
      let rows = database.selectFrom('grants').selectAll()
      if (query.principal !== undefined) rows = rows.where('principal', '=', query.principal)
      if (query.of !== undefined) rows = rows.where('principal_id', 'in', [...query.of, ''])
      if (cursor !== undefined) {
        const [at, id] = parseCursor(cursor, Cursor)
        rows = rows.where(({ eb, refTuple, tuple }) => eb(refTuple('given_at', 'id'), '<', tuple(at, id)))
      }
      const found = await rows
        .orderBy('given_at', 'desc')
        .orderBy('id', 'desc')
        .limit(limit + 1)
        .execute()
      return toPage(found, limit, toGrant, (row) => [row.given_at, row.id])
    },
    async add(grant, change) {
      const outcome = await writer.commit([insert(grant), { entry: toChangeEntry(change, now()) }])
      if (outcome.kind === 'refused') throw new Error(`The grant was not stored: ${outcome.reason}`)
    },
    async revoke(id, by, change) {
      const update = database.updateTable('grants').set({ revoked_at: now(), revoked_by: by })
      const revoke = toStatement(update.where('id', '=', id).where('revoked_at', 'is', null), 1)
      const outcome = await writer.commit([revoke, { entry: toChangeEntry(change, now()) }])
      return outcome.kind === 'done'
    },
    revokeAll: ({ keys, giverIds }, by) =>
      toStatement(
        database
          .updateTable('grants')
          .set({ revoked_at: now(), revoked_by: by })
          .where('revoked_at', 'is', null)
          .where(({ eb, or }) =>
            or([
              eb('principal', 'in', [...keys, '']),
              eb('scope', 'in', [...keys, '']),
              eb('giver_id', 'in', [...giverIds, '']),
            ]),
          ),
      ),
    spend: (id) => spend({ id, at: now() }),
    refund: (id) =>
      toStatement(
        database
          .updateTable('grants')
          .set((grant) => ({ used: grant('used', '-', 1) }))
          .where('id', '=', id)
          .where('used', '>', 0),
      ),
    insert,
  }
}

function toRow(grant: Grant): GrantsTable {
  return {
    id: grant.id,
    tools: grant.tools,
    arguments: grant.arguments === undefined ? null : JSON.stringify(grant.arguments),
    exactly: grant.exactly ?? null,
    meta: grant.meta ?? null,
    principal: grant.principal ?? null,
    principal_id: grant.principalId ?? null,
    scope: grant.scope ?? null,
    definitions: JSON.stringify(grant.definitions ?? {}),
    budget: grant.budget,
    used: grant.used,
    expires_at: Date.parse(grant.expiresAt),
    reason: grant.reason ?? null,
    given_by: grant.givenBy,
    giver_id: grant.giverId ?? `user-${grant.givenBy}`,
    given_at: Date.parse(grant.givenAt),
    last_used_at: null,
    revoked_at: null,
    revoked_by: null,
  }
}

function toGrant(row: GrantsTable): Grant {
  return Grant.parse({
    id: row.id,
    tools: row.tools,
    arguments: row.arguments === null ? undefined : parseJson(row.arguments),
    exactly: row.exactly ?? undefined,
    meta: row.meta ?? undefined,
    principal: row.principal ?? undefined,
    principalId: row.principal_id ?? undefined,
    scope: row.scope ?? undefined,
    definitions: parseJson(row.definitions),
    budget: row.budget,
    used: row.used,
    expiresAt: toIso(row.expires_at),
    reason: row.reason ?? undefined,
    givenBy: row.given_by,
    giverId: row.giver_id,
    givenAt: toIso(row.given_at),
    lastUsedAt: row.last_used_at === null ? undefined : toIso(row.last_used_at),
    revokedAt: row.revoked_at === null ? undefined : toIso(row.revoked_at),
    revokedBy: row.revoked_by ?? undefined,
  })
}

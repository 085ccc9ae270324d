import { type Change, toChangeEntry } from './audit.ts'
import { type Database, type TokensTable, toStatement } from './database.ts'
import type { Writer } from './writer.ts'

/** A token as it is kept: its digest, never itself. Times are milliseconds. */
export type StoredToken = {
  readonly id: string
  readonly agent: string
  readonly prefix: string
  /** SHA-256 of the whole token, hexadecimal. */
  readonly hash: string
  readonly createdAt: number
  readonly lastUsedAt?: number
  readonly expiresAt?: number
  readonly revokedAt?: number
}

export type TokenStore = {
  all(): Promise<StoredToken[]>
  /** The token and the entry that tells of it, in one unit. */
  add(token: StoredToken, change: Change): Promise<void>
  /** `false` when it was revoked before, or never was: then nothing changes and no entry is written. */
  revoke(id: string, at: number, change: Change): Promise<boolean>
  markUsed(id: string, at: number): void
}

type TokenStoreParts = { database: Database; writer: Writer; now(): number }

export function createTokenStore({ database, writer, now }: TokenStoreParts): TokenStore {
  return {
    async all() {
      const rows = await database.selectFrom('tokens').selectAll().orderBy('created_at').orderBy('id').execute()
      return rows.map(toStoredToken)
    },
    async add(token, change) {
      const insert = toStatement(database.insertInto('tokens').values(toRow(token)), 1)
      const outcome = await writer.commit([insert, { entry: toChangeEntry(change, now()) }])
      if (outcome.kind === 'refused') throw new Error(`The token was not stored: ${outcome.reason}`)
    },
    async revoke(id, at, change) {
      const update = database.updateTable('tokens').set({ revoked_at: at })
      const revoke = toStatement(update.where('id', '=', id).where('revoked_at', 'is', null), 1)
      const outcome = await writer.commit([revoke, { entry: toChangeEntry(change, now()) }])
      return outcome.kind === 'done'
    },
    markUsed: (id, at) =>
      writer.attempt([toStatement(database.updateTable('tokens').set({ last_used_at: at }).where('id', '=', id))]),
  }
}

function toRow(token: StoredToken): TokensTable {
  return {
    id: token.id,
    agent: token.agent,
    prefix: token.prefix,
    hash: token.hash,
    created_at: token.createdAt,
    last_used_at: token.lastUsedAt ?? null,
    expires_at: token.expiresAt ?? null,
    revoked_at: token.revokedAt ?? null,
  }
}

function toStoredToken(row: TokensTable): StoredToken {
  return {
    id: row.id,
    agent: row.agent,
    prefix: row.prefix,
    hash: row.hash,
    createdAt: row.created_at,
    lastUsedAt: row.last_used_at ?? undefined,
    expiresAt: row.expires_at ?? undefined,
    revokedAt: row.revoked_at ?? undefined,
  }
}

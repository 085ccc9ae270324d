import { type Database, type TokensTable, toStatement } from '../database.ts'
import type { Statement } from '../unit.ts'
import type { Writer } from '../writer.ts'
import { addAgent, type NewAgent } from './agents.ts'
import { type Change, toChangeEntry } from './audit.ts'

/** A stored token. Contains only its digest. Times are milliseconds. */
export type StoredToken = {
  readonly id: string
  readonly kind: 'agent' | 'session'
  /** The name of the agent or the session. */
  readonly name: string
  readonly holderId: string
  readonly prefix: string
  /** SHA-256 of the whole token, hexadecimal. */
  readonly hash: string
  readonly createdAt: number
  readonly createdBy?: string
  readonly lastUsedAt?: number
  readonly expiresAt?: number
  readonly revokedAt?: number
}

export type TokenStore = {
  /** All tokens of agents, and the valid tokens of sessions: invalid session tokens are many and not needed. */
  all(): Promise<StoredToken[]>
  /** Adds the token, optionally a new agent, and their audit entries in one unit. False if an agent of that name exists. */
  add(token: StoredToken, change: Change, agent?: NewAgent): Promise<boolean>
  /** False if the token was already revoked or does not exist. Then nothing is written. */
  revoke(id: string, at: number, change: Change): Promise<boolean>
  /** A step of a removal: revokes the tokens of these agents. */
  revokeAll(holderIds: readonly string[]): Statement
  markUsed(id: string, at: number): void
}

type TokenStoreParts = { database: Database; writer: Writer; now(): number }

export function createTokenStore({ database, writer, now }: TokenStoreParts): TokenStore {
  return {
    async all() {
      const rows = await database
        .selectFrom('tokens')
        .selectAll()
        .where(({ eb, or, and }) =>
          or([eb('kind', '=', 'agent'), and([eb('revoked_at', 'is', null), eb('expires_at', '>', now())])]),
        )
        .orderBy('created_at')
        .orderBy('id')
        .execute()
      return rows.map(toStoredToken)
    },
    async add(token, change, agent) {
      const insert = toStatement(insertToken(database, token), 1)
      const first = agent ? addAgent(database, agent, now()) : []
      const outcome = await writer.commit([...first, insert, { entry: toChangeEntry(change, now()) }])
      if (outcome.kind === 'done') return true
      if (outcome.step < first.length && outcome.by === 'expectation') return false
      throw new Error(`The token was not stored: ${outcome.reason}`)
    },
    async revoke(id, at, change) {
      const update = database.updateTable('tokens').set({ revoked_at: at })
      const revoke = toStatement(update.where('id', '=', id).where('revoked_at', 'is', null), 1)
      const outcome = await writer.commit([revoke, { entry: toChangeEntry(change, now()) }])
      return outcome.kind === 'done'
    },
    revokeAll: (holderIds) =>
      toStatement(
        database
          .updateTable('tokens')
          .set({ revoked_at: now() })
          .where('revoked_at', 'is', null)
          .where('holder_id', 'in', [...holderIds, '']),
      ),
    markUsed: (id, at) =>
      writer.attempt([toStatement(database.updateTable('tokens').set({ last_used_at: at }).where('id', '=', id))]),
  }
}

export function insertToken(database: Database, token: StoredToken) {
  return database.insertInto('tokens').values(toRow(token))
}

function toRow(token: StoredToken): TokensTable {
  return {
    id: token.id,
    kind: token.kind,
    name: token.name,
    holder_id: token.holderId,
    prefix: token.prefix,
    hash: token.hash,
    created_at: token.createdAt,
    last_used_at: token.lastUsedAt ?? null,
    expires_at: token.expiresAt ?? null,
    revoked_at: token.revokedAt ?? null,
    created_by: token.createdBy ?? null,
  }
}

function toStoredToken(row: TokensTable): StoredToken {
  return {
    id: row.id,
    kind: row.kind === 'session' ? 'session' : 'agent',
    name: row.name,
    holderId: row.holder_id,
    prefix: row.prefix,
    hash: row.hash,
    createdAt: row.created_at,
    createdBy: row.created_by ?? undefined,
    lastUsedAt: row.last_used_at ?? undefined,
    expiresAt: row.expires_at ?? undefined,
    revokedAt: row.revoked_at ?? undefined,
  }
}

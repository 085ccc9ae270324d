import { SessionServers as Servers, type SessionServers } from '../../contract/session.ts'
import { parseJson } from '../../lib/json.ts'
import { type Database, type SessionsTable, toStatement } from '../database.ts'
import type { Statement } from '../unit.ts'
import type { Writer } from '../writer.ts'
import { type Change, toChangeEntry } from './audit.ts'
import { insertToken, type StoredToken } from './tokens.ts'

export type StoredSession = {
  readonly name: string
  readonly ownerId?: string
  readonly agentId?: string
  readonly project?: string
  readonly servers: SessionServers
  readonly createdAt: number
  readonly createdBy: string
  readonly expiresAt: number
  readonly endedAt?: number
}

export type SessionHolders = {
  readonly ownerIds: readonly string[]
  readonly agentIds: readonly string[]
  readonly projects: readonly string[]
}

export type SessionStore = {
  /** Sessions that have not ended or expired. */
  open(): Promise<StoredSession[]>
  find(name: string): Promise<StoredSession | undefined>
  /** Newest first, including ended sessions. */
  list(limit: number, ownerId?: string): Promise<StoredSession[]>
  /** Adds a session with its first token. False if the name was ever used before. */
  add(session: StoredSession, token: StoredToken, change: Change): Promise<boolean>
  /** Also changes the expiry of its tokens. False if the session is not open. */
  change(name: string, fields: { servers?: SessionServers; expiresAt?: number }, change: Change): Promise<boolean>
  /** Steps of a removal: ends every open session of these users, agents and projects, and revokes their tokens. */
  endAll(of: SessionHolders): readonly Statement[]
  /** False if the session has already ended. */
  end(name: string, change: Change): Promise<boolean>
}

type SessionStoreParts = { database: Database; writer: Writer; now(): number }

export function createSessionStore({ database, writer, now }: SessionStoreParts): SessionStore {
  async function commit(statements: readonly Statement[], change: Change): Promise<boolean> {
    const outcome = await writer.commit([...statements, { entry: toChangeEntry(change, now()) }])
    return outcome.kind === 'done'
  }
  const openOnes = () => database.updateTable('sessions').where('ended_at', 'is', null)
  const tokensOf = (name: string) =>
    database.updateTable('tokens').where('kind', '=', 'session').where('name', '=', name)

  return {
    async open() {
      const rows = await database
        .selectFrom('sessions')
        .selectAll()
        .where('ended_at', 'is', null)
        .where('expires_at', '>', now())
        .orderBy('created_at')
        .execute()
      return rows.map(toStoredSession)
    },
    async find(name) {
      const row = await database.selectFrom('sessions').selectAll().where('name', '=', name).executeTakeFirst()
      return row && toStoredSession(row)
    },
    async list(limit, ownerId) {
      let rows = database.selectFrom('sessions').selectAll()
      if (ownerId !== undefined) rows = rows.where('owner_id', '=', ownerId)
      const found = await rows.orderBy('created_at', 'desc').orderBy('name').limit(limit).execute()
      return found.map(toStoredSession)
    },
    add(session, token, change) {
      const insert = database.insertInto('sessions').values(toRow(session))
      const once = insert.onConflict((conflict) => conflict.column('name').doNothing())
      return commit([toStatement(once, 1), toStatement(insertToken(database, token), 1)], change)
    },
    change(name, { servers, expiresAt }, change) {
      const fields = {
        ...(servers && { servers: JSON.stringify(servers) }),
        ...(expiresAt !== undefined && { expires_at: expiresAt }),
      }
      const update = openOnes().set(fields).where('name', '=', name).where('expires_at', '>', now())
      const tokens = expiresAt === undefined ? [] : [toStatement(tokensOf(name).set({ expires_at: expiresAt }))]
      return commit([toStatement(update, 1), ...tokens], change)
    },
    endAll({ ownerIds, agentIds, projects }) {
      const at = now()
      const held = database
        .selectFrom('sessions')
        .select('name')
        .where('ended_at', 'is', null)
        .where(({ eb, or }) =>
          or([
            eb('owner_id', 'in', [...ownerIds, '']),
            eb('agent_id', 'in', [...agentIds, '']),
            eb('project', 'in', [...projects, '']),
          ]),
        )
      const tokens = database.updateTable('tokens').set({ revoked_at: at }).where('revoked_at', 'is', null)
      return [
        toStatement(tokens.where('kind', '=', 'session').where('name', 'in', held)),
        toStatement(openOnes().set({ ended_at: at }).where('name', 'in', held)),
      ]
    },
    end(name, change) {
      const at = now()
      const tokens = tokensOf(name).set({ revoked_at: at }).where('revoked_at', 'is', null)
      return commit(
        [toStatement(openOnes().set({ ended_at: at }).where('name', '=', name), 1), toStatement(tokens)],
        change,
      )
    },
  }
}

function toRow(session: StoredSession): SessionsTable {
  return {
    name: session.name,
    owner_id: session.ownerId ?? null,
    agent_id: session.agentId ?? null,
    project: session.project ?? null,
    servers: JSON.stringify(session.servers),
    created_at: session.createdAt,
    created_by: session.createdBy,
    expires_at: session.expiresAt,
    ended_at: session.endedAt ?? null,
  }
}

function toStoredSession(row: SessionsTable): StoredSession {
  return {
    name: row.name,
    ownerId: row.owner_id ?? undefined,
    agentId: row.agent_id ?? undefined,
    project: row.project ?? undefined,
    servers: Servers.parse(parseJson(row.servers)),
    createdAt: row.created_at,
    createdBy: row.created_by,
    expiresAt: row.expires_at,
    endedAt: row.ended_at ?? undefined,
  }
}

import { GatewayError } from '../contract/errors.ts'
import type { StoredAgent } from '../storage/agents.ts'
import type { StoredSession } from '../storage/sessions.ts'
import type { Storage } from '../storage/storage.ts'
import type { StoredUser } from '../storage/users.ts'

/** Who there is, in memory: a request is judged without asking the database. */
export type Directory = {
  /** Not one that was removed. */
  findUser(name: string): StoredUser | undefined
  /** May sign in, and what it owns may be used. */
  findActive(name: string): StoredUser | undefined
  users(): StoredUser[]
  /** Removed ones as well: their names are taken. */
  findAgent(name: string): StoredAgent | undefined
  agents(): StoredAgent[]
  /** One that has neither ended nor expired, as far as the last reading knows. */
  findSession(name: string): StoredSession | undefined
  sessions(): StoredSession[]
  /** Throws unless an active user has this name. */
  demandUser(name: string): StoredUser
  readUsers(): Promise<void>
  readAgents(): Promise<void>
  readSessions(): Promise<void>
  /** Forgets the sessions that have expired since. */
  expire(now: number): void
}

export type DirectoryStorage = Pick<Storage, 'users' | 'agents' | 'sessions'>

export function createDirectory(storage: DirectoryStorage): Directory {
  let users = new Map<string, StoredUser>()
  let agents = new Map<string, StoredAgent>()
  let sessions = new Map<string, StoredSession>()

  function findUser(name: string): StoredUser | undefined {
    const user = users.get(name)
    return user?.removedAt === undefined ? user : undefined
  }
  function findActive(name: string): StoredUser | undefined {
    const user = findUser(name)
    return user?.disabledAt === undefined ? user : undefined
  }

  return {
    findUser,
    findActive,
    users: () => [...users.values()].filter(({ removedAt }) => removedAt === undefined),
    findAgent: (name) => agents.get(name),
    agents: () => [...agents.values()].filter(({ removedAt }) => removedAt === undefined),
    findSession: (name) => sessions.get(name),
    sessions: () => [...sessions.values()],
    demandUser(name) {
      const user = findActive(name)
      if (user) return user
      throw new GatewayError('request-invalid', `No user is named ${name}`)
    },
    async readUsers() {
      users = byName(await storage.users.all())
    },
    async readAgents() {
      agents = byName(await storage.agents.all())
    },
    async readSessions() {
      sessions = byName(await storage.sessions.open())
    },
    expire(now) {
      for (const { name, expiresAt } of sessions.values()) if (expiresAt <= now) sessions.delete(name)
    },
  }
}

function byName<Row extends { readonly name: string }>(rows: readonly Row[]): Map<string, Row> {
  return new Map(rows.map((row) => [row.name, row]))
}

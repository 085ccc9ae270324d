import { GatewayError } from '../contract/errors.ts'
import type { Storage } from '../storage/storage.ts'
import type { StoredAgent } from '../storage/tables/agents.ts'
import type { StoredSession } from '../storage/tables/sessions.ts'
import type { StoredUser } from '../storage/tables/users.ts'

/** An agent with the name of its owner. */
export type KnownAgent = StoredAgent & { readonly owner?: string }
/** A session with the names of its owner and its agent. */
export type KnownSession = StoredSession & { readonly owner?: string; readonly agent?: string }

/** All identities, in memory, so that a request can be authorised without a database query. */
export type Directory = {
  findUser(name: string): StoredUser | undefined
  /** A user who is not disabled: may sign in, and the user's agents may be used. */
  findActive(name: string): StoredUser | undefined
  users(): StoredUser[]
  /** Agents and sessions of a removed user are not found, even if their rows still exist. */
  findAgent(name: string): KnownAgent | undefined
  agents(): KnownAgent[]
  /** A session that has not ended or expired, as of the last read. */
  findSession(name: string): KnownSession | undefined
  sessions(): KnownSession[]
  /** Adds the names of owner and agent to a stored session. */
  toKnownSession(session: StoredSession): KnownSession
  /** The ids of the user, of the user's agents (including removed agents) and of the user's open sessions. */
  idsOwnedBy(ownerId: string): string[]
  /** Throws unless an active user has this name. */
  demandUser(name: string): StoredUser
  readUsers(): Promise<void>
  readAgents(): Promise<void>
  readSessions(): Promise<void>
  /** Removes the expired sessions. */
  expire(now: number): void
}

export type DirectoryStorage = Pick<Storage, 'users' | 'agents' | 'sessions'>

export function createDirectory(storage: DirectoryStorage): Directory {
  let users: readonly StoredUser[] = []
  let usersByName = new Map<string, StoredUser>()
  let usersById = new Map<string, StoredUser>()
  let agents: readonly StoredAgent[] = []
  let agentsByName = new Map<string, StoredAgent>()
  let agentsById = new Map<string, StoredAgent>()
  let sessions = new Map<string, StoredSession>()

  function findUser(name: string): StoredUser | undefined {
    return usersByName.get(name)
  }
  function findActive(name: string): StoredUser | undefined {
    const user = findUser(name)
    return user?.disabledAt === undefined ? user : undefined
  }
  /**
   * An agent without an owner belongs to the administrators. So an agent whose owner was removed must not look like one
   * without an owner.
   */
  function isOrphan({ ownerId }: { readonly ownerId?: string }): boolean {
    return ownerId !== undefined && usersById.get(ownerId)?.removedAt !== undefined
  }
  function toOwnerName(ownerId: string | undefined): { owner?: string } {
    if (ownerId === undefined) return {}
    return { owner: usersById.get(ownerId)?.name ?? ownerId }
  }
  const toKnownAgent = (agent: StoredAgent): KnownAgent => ({ ...agent, ...toOwnerName(agent.ownerId) })
  function toKnownSession(session: StoredSession): KnownSession {
    const { agentId } = session
    const agent = agentId === undefined ? {} : { agent: agentsById.get(agentId)?.name ?? agentId }
    return { ...session, ...toOwnerName(session.ownerId), ...agent }
  }
  /** Sessions of a removed agent are not open either. */
  function isOpen(session: StoredSession): boolean {
    const agent = session.agentId === undefined ? undefined : agentsById.get(session.agentId)
    return !isOrphan(session) && agent?.removedAt === undefined
  }

  return {
    findUser,
    findActive,
    users: () => [...usersByName.values()],
    findAgent(name) {
      const agent = agentsByName.get(name)
      return agent && !isOrphan(agent) ? toKnownAgent(agent) : undefined
    },
    agents: () => [...agentsByName.values()].filter((agent) => !isOrphan(agent)).map(toKnownAgent),
    findSession(name) {
      const session = sessions.get(name)
      return session && isOpen(session) ? toKnownSession(session) : undefined
    },
    sessions: () => [...sessions.values()].filter(isOpen).map(toKnownSession),
    toKnownSession,
    idsOwnedBy: (ownerId) => [
      ownerId,
      ...agents.filter((agent) => agent.ownerId === ownerId).map(({ id }) => id),
      ...[...sessions.values()].filter((session) => session.ownerId === ownerId).map(({ name }) => `session-${name}`),
    ],
    demandUser(name) {
      const user = findActive(name)
      if (user) return user
      throw new GatewayError('request-invalid', `No user is named ${name}`)
    },
    async readUsers() {
      users = await storage.users.all()
      usersById = new Map(users.map((user) => [user.id, user]))
      usersByName = byName(users.filter(({ removedAt }) => removedAt === undefined))
    },
    async readAgents() {
      agents = await storage.agents.all()
      agentsById = new Map(agents.map((agent) => [agent.id, agent]))
      agentsByName = byName(agents.filter(({ removedAt }) => removedAt === undefined))
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

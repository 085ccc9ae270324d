import { GatewayError } from '../contract/errors.ts'
import { type Principal, toPrincipalId, toPrincipalKey } from '../contract/principal.ts'
import type { NewSession, SavedSession, Session, SessionServers } from '../contract/session.ts'
import { type Clock, toIso } from '../lib/clock.ts'
import type { Ids } from '../lib/ids.ts'
import { hideAllLiterals } from '../masking/masking.ts'
import type { Storage } from '../storage/storage.ts'
import type { Change } from '../storage/tables/audit.ts'
import type { StoredToken } from '../storage/tables/tokens.ts'
import type { Directory, KnownAgent, KnownSession } from './directory.ts'
import { administers, manages, oversees, owns, toOwner } from './rights.ts'
import { createTokenText, toTokenPrefix } from './token-text.ts'
import { parseExpiry, parseName } from './tokens.ts'

/** The owner, agent and project that a session inherits its settings from. */
export type SessionOrigin = Pick<KnownSession, 'name' | 'owner' | 'agent' | 'project'>

/** Servers without literal secrets. `undo` removes the new secrets if the servers are not stored. */
export type StoredLiterals = {
  readonly servers: SessionServers
  readonly secrets: readonly string[]
  readonly warnings: readonly string[]
  undo(): Promise<void>
}

export type WantedSession = {
  name?: string
  agent?: string
  project?: string
  owner?: string
  servers?: SessionServers
  expiresAt?: string
}

export type Sessions = {
  list(by: Principal, all?: boolean): Promise<Session[]>
  get(by: Principal, name: string): Promise<Session>
  create(by: Principal, wanted: WantedSession): Promise<NewSession>
  update(by: Principal, name: string, fields: { servers?: SessionServers; expiresAt?: string }): Promise<SavedSession>
  /** Takes effect at once, before it is stored. */
  end(by: Principal, name: string): Promise<Session>
}

type SessionsParts = {
  readonly storage: Pick<Storage, 'sessions' | 'changes'>
  readonly directory: Directory
  readonly clock: Clock
  readonly ids: Ids
  /** The owners of a project. Throws if the project does not exist. */
  projectOwners(project: string): readonly string[]
  /** Throws unless `by` may use these servers in a session. */
  judgeServers(by: Principal, session: SessionOrigin, servers: SessionServers): void
  /** Stores the secrets that are written in the servers. `before` are the servers that they replace. */
  storeLiterals(
    by: Principal,
    session: string,
    servers: SessionServers,
    before: SessionServers,
  ): Promise<StoredLiterals>
  endTokens(session: string): void
}

const day = 86_400_000
const longest = 30 * day
const mostOpen = 10_000
const mostOfOwner = 1000
const mostListed = 1000

export function createSessions(parts: SessionsParts): Sessions {
  const { storage, directory, clock, ids } = parts

  async function announce(): Promise<void> {
    await storage.changes.announce('sessions')
    await storage.changes.announce('tokens')
  }

  async function getStored(name: string, by: Principal, looking: boolean): Promise<KnownSession> {
    const session = directory.findSession(name) ?? (await findStored(name))
    // The same error as for a missing session, so that the names of other users' sessions stay hidden.
    if (session && ((looking && oversees(by)) || manages(by, session.owner))) return session
    throw new GatewayError('not-found', `No session is named ${name}`)
  }

  /** Also finds sessions that have ended. */
  async function findStored(name: string): Promise<KnownSession | undefined> {
    const stored = await storage.sessions.find(name)
    return stored && directory.toKnownSession(stored)
  }

  function demandRoom(owner: string | undefined): void {
    const open = directory.sessions()
    const own = open.filter((session) => session.owner === owner)
    if (open.length < mostOpen && own.length < mostOfOwner) return
    throw new GatewayError('limit-exceeded', 'Too many sessions are open; end some of them first')
  }

  /** Only a principal who manages the agent, or owns the project, may create a session that inherits its settings. */
  function demandOrigin({ agent: name, project }: WantedSession, by: Principal): KnownAgent | undefined {
    const agent = name === undefined ? undefined : directory.findAgent(name)
    if (name !== undefined && (!agent || !manages(by, agent.owner)))
      throw new GatewayError('not-found', `No agent is named ${name}`)
    if (project !== undefined && !parts.projectOwners(project).some((owner) => owns(by, owner)) && !administers(by))
      throw new GatewayError('forbidden', `Only owners of the project ${project} can create sessions in it`)
    return agent
  }

  function toExpiry(text: string | undefined, now: number): number {
    return text === undefined ? now + day : Math.min(parseExpiry(text, now), now + longest)
  }

  function toSession({ createdAt, expiresAt, endedAt, ...known }: KnownSession): Session {
    const { name, owner, agent, project } = known
    const servers = hideAllLiterals(known.servers)
    const state = endedAt === undefined ? (expiresAt > clock.now() ? 'open' : 'expired') : 'ended'
    const times = { createdAt: toIso(createdAt), expiresAt: toIso(expiresAt) }
    return {
      name,
      owner,
      agent,
      project,
      servers,
      state,
      ...times,
      endedAt: endedAt === undefined ? undefined : toIso(endedAt),
    }
  }

  return {
    async list(by, all = false) {
      const seen = ({ owner }: KnownSession) => oversees(by) || manages(by, owner)
      if (!all) return directory.sessions().filter(seen).map(toSession)
      const stored = await storage.sessions.list(mostListed, oversees(by) ? undefined : toPrincipalId(by))
      return stored.map(directory.toKnownSession).filter(seen).map(toSession)
    },
    get: async (by, name) => toSession(await getStored(name, by, true)),
    async create(by, wanted) {
      const { agent, project } = wanted
      const now = clock.now()
      const inherited = demandOrigin(wanted, by)
      const owner = toOwner(by, wanted.owner) ?? inherited?.owner
      const ownerId = owner === undefined ? undefined : directory.demandUser(owner).id
      demandRoom(owner)
      const chosen = `${agent ?? owner ?? 'session'}-${ids.next('session').slice(-10)}`
      const name = wanted.name === undefined ? chosen.slice(-64) : parseName('session', wanted.name)
      const createdBy = toPrincipalKey(by)
      const expiresAt = toExpiry(wanted.expiresAt, now)
      parts.judgeServers(by, { name, owner, agent, project }, wanted.servers ?? {})
      const made = { createdAt: now, createdBy, expiresAt }
      // The secrets of a name that is taken would be secrets of another session.
      if (await storage.sessions.find(name)) throw nameTaken(name)
      const stored = await parts.storeLiterals(by, name, wanted.servers ?? {}, {})
      const { servers } = stored
      const session = { name, owner, ownerId, agent, agentId: inherited?.id, project, servers, ...made }
      const { id, text, digest } = createTokenText(ids)
      const hash = digest.toString('hex')
      const kept = { id, prefix: toTokenPrefix(id), hash, createdAt: now, createdBy, expiresAt }
      const token: StoredToken = { ...kept, kind: 'session', name, holderId: toPrincipalId({ kind: 'session', name }) }
      const body = { action: 'session-created', owner, agent, project, servers: Object.keys(servers), token: id }
      await orUndo(stored, async () => {
        parts.judgeServers(by, { name, owner, agent, project }, servers)
        if (!(await storage.sessions.add(session, token, toChange(name, by, body)))) throw nameTaken(name)
      })
      await announce()
      return { ...toSession(session), ...toNotes(stored), token: text }
    },
    async update(by, name, fields) {
      const session = await getStored(name, by, false)
      if (fields.servers) parts.judgeServers(by, session, fields.servers)
      const expiresAt = fields.expiresAt === undefined ? undefined : toExpiry(fields.expiresAt, clock.now())
      if (fields.servers === undefined && expiresAt === undefined) return toSession(session)
      const stored = fields.servers && (await parts.storeLiterals(by, name, fields.servers, session.servers))
      const servers = stored?.servers
      const body = { action: 'session-changed', servers: servers && Object.keys(servers), expiresAt: fields.expiresAt }
      await orUndo(stored, async () => {
        if (servers) parts.judgeServers(by, session, servers)
        const changed = await storage.sessions.change(name, { servers, expiresAt }, toChange(name, by, body))
        if (!changed) throw new GatewayError('not-found', `The session ${name} has ended`)
      })
      await announce()
      return { ...toSession(await getStored(name, by, false)), ...(stored && toNotes(stored)) }
    },
    async end(by, name) {
      await getStored(name, by, false)
      parts.endTokens(name)
      await storage.sessions.end(name, toChange(name, by, { action: 'session-ended' }))
      await announce()
      return toSession(await getStored(name, by, false))
    },
  }
}

/** Removes the new secrets if the servers that use them are not stored. */
async function orUndo(stored: StoredLiterals | undefined, task: () => Promise<void>): Promise<void> {
  try {
    await task()
  } catch (error) {
    await stored?.undo()
    throw error
  }
}

function toNotes({ secrets, warnings }: StoredLiterals): Pick<SavedSession, 'secrets' | 'warnings'> {
  return {
    ...(secrets.length > 0 && { secrets: [...secrets] }),
    ...(warnings.length > 0 && { warnings: [...warnings] }),
  }
}

function nameTaken(name: string): GatewayError {
  return new GatewayError('name-taken', `The session name ${name} has been used before`)
}

function toChange(name: string, by: Principal, body: Record<string, unknown>): Change {
  return { principal: toPrincipalKey(by), subject: `session:${name}`, body }
}

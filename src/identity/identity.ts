import { GatewayError, toGatewayError } from '../contract/errors.ts'
import { type Principal, toPrincipalId, toPrincipalKey } from '../contract/principal.ts'
import type { SessionServers } from '../contract/session.ts'
import type { NewToken, Token } from '../contract/token.ts'
import type { Clock } from '../lib/clock.ts'
import type { Ids } from '../lib/ids.ts'
import { toProof } from '../lib/proof.ts'
import type { Remover } from '../storage/removal.ts'
import type { Storage } from '../storage/storage.ts'
import { loadAdminToken } from './admin-token.ts'
import { type Agents, createAgents } from './agents.ts'
import { createDirectory, type KnownSession } from './directory.ts'
import { createPasswords, type PasswordCost } from './passwords.ts'
import { createIdentityRemover } from './remover.ts'
import { createSessions, type SessionOrigin, type Sessions, type StoredLiterals } from './sessions.ts'
import { createSetup, type Setup } from './setup.ts'
import { createSignIns, type SignIns } from './sign-ins.ts'
import { createSubjects, type Subjects } from './subjects.ts'
import { createTokens, type WantedToken } from './tokens.ts'
import { createUsers, type Users } from './users.ts'

export { toBearer } from './bearer.ts'
export type { PasswordCost } from './passwords.ts'
export { adminToken } from './rights.ts'
export { longestSignIn } from './sign-ins.ts'

export type Identity = {
  /** The principal of a token. Throws `token-missing` or `token-invalid`. */
  authenticate(bearer: string | undefined): Principal
  /** Throws if the token or sign-in of this principal ended after it was accepted, for example while the body was sent. */
  demandCurrent(principal: Principal): void
  readonly tokens: TokenService
  readonly users: Omit<Users, 'addFirst'>
  readonly agents: Agents
  readonly subjects: Subjects
  readonly remover: Remover
  /** The ids of a user and of the agents and sessions that the user owns. */
  idsOf(user: Principal): string[]
  /**
   * The id of a principal. A program that embeds the gateway may give a principal without an id; then its name is
   * looked up.
   */
  idOf(principal: Principal): string
  /** The id of a key such as `agent:reviewer` or `user:kim`; undefined if the name does not exist. */
  findId(key: string): string | undefined
  readonly sessions: Sessions
  /** An open session, from memory. Its settings are not in the configuration file. */
  findSession(name: string): Pick<KnownSession, 'owner' | 'agent' | 'project' | 'servers'> | undefined
  /** The agents, sessions and administrators, which are not in the configuration file. */
  roster(): Roster
  /** Calls the listener when the roster has changed. */
  onRoster(listener: () => void): () => void
  readonly signIns: Pick<SignIns, 'signIn' | 'authenticate' | 'signOut'>
  readonly setup: Setup
  /** Proves to a command on this machine that the gateway at this address knows the token of the data folder. */
  prove(question: { url: string; challenge: string }): string
  /**
   * Calls the listener when a token or sign-in has become invalid, so that its open requests can be ended. The
   * principal is the same object that `authenticate` returned.
   */
  onRevoked(listener: (principal: Principal) => void): () => void
  close(): void
}

/** `by` is the principal who acts. It must have the right to do so, and the audit records it. */
export type TokenService = {
  create(by: Principal, wanted: WantedToken): Promise<NewToken>
  list(by: Principal): Token[]
  /** Takes effect at once, before it is stored. */
  revoke(by: Principal, id: string): Promise<Token>
}

export type IdentityParts = {
  readonly storage: Pick<Storage, 'tokens' | 'users' | 'signIns' | 'agents' | 'sessions' | 'audit' | 'changes'>
  readonly folder: string
  readonly clock: Clock
  readonly ids: Ids
  /** `SALLYPORT_ADMIN_PASSWORD`: at the first start it creates the administrator `admin`. */
  readonly firstPassword?: string | undefined
  /** The agents and projects of the configuration. */
  readonly configured?: Configured
  readonly passwordCost?: PasswordCost
}

export type Configured = {
  hasAgent(name: string): boolean
  findProjectOwners(name: string): readonly string[] | undefined
  /** Throws unless `by` may use these servers in a session. */
  judgeServers(by: Principal, session: SessionOrigin, servers: SessionServers): void
  /** Stores the secrets that are written in the servers of a session, which replace the servers `before`. */
  storeLiterals(
    by: Principal,
    session: string,
    servers: SessionServers,
    before: SessionServers,
  ): Promise<StoredLiterals>
}

export type Roster = {
  readonly agents: readonly { readonly name: string; readonly owner?: string }[]
  readonly sessions: readonly (Pick<KnownSession, 'name' | 'owner' | 'agent' | 'project' | 'servers'> & {
    readonly rules: []
  })[]
  /** Users with the role administrator. Their settings are trusted like the global settings. */
  readonly administrators: readonly string[]
}

/** Expired tokens and sign-ins are searched this often, so that their open requests end even if no new request arrives. */
const checkEvery = 5000

/** Without a configuration there is no secret store. */
function unmoved(servers: SessionServers): StoredLiterals {
  return { servers, secrets: [], warnings: [], undo: async () => undefined }
}

export async function createIdentity(parts: IdentityParts): Promise<Identity> {
  const { storage, folder, clock, ids, configured } = parts
  const admin = await loadAdminToken(folder, ids)
  const listeners = new Set<(principal: Principal) => void>()
  /** Principals whose token or sign-in is invalid. Each token and each sign-in has exactly one principal object. */
  const ended = new WeakSet<Principal>()
  const onRevoked = (principal: Principal) => {
    ended.add(principal)
    for (const listener of listeners) listener(principal)
  }
  const directory = createDirectory(storage)
  const passwords = createPasswords(parts.passwordCost)
  const isConfigured = (name: string) => configured?.hasAgent(name) ?? false
  const tokens = createTokens({ storage, directory, admin, clock, ids, isConfigured, onRevoked })
  const users = createUsers({ storage, directory, passwords, clock, ids })
  const signIns = createSignIns({ storage, directory, passwords, clock, ids, onRevoked })
  const agents = createAgents({ storage, directory, clock, ids, isConfigured, countTokens: tokens.countOf })
  const sessions = createSessions({
    storage,
    directory,
    clock,
    ids,
    endTokens: tokens.endOf,
    judgeServers: (by, session, servers) => configured?.judgeServers(by, session, servers),
    storeLiterals: async (by, session, servers, before) =>
      (await configured?.storeLiterals(by, session, servers, before)) ?? unmoved(servers),
    projectOwners(name) {
      const owners = configured?.findProjectOwners(name)
      if (owners) return owners
      throw new GatewayError('not-found', `No project is named ${name}`)
    },
  })

  /** Reads run one after the other, so that an older read cannot overwrite the result of a newer one. */
  let last: Promise<void> = Promise.resolve()
  function inTurn(read: () => Promise<void>): () => Promise<void> {
    return () => {
      const turn = last.then(read).then(checkAll)
      last = turn.catch(() => undefined)
      return turn
    }
  }
  function checkAll(): void {
    directory.expire(clock.now())
    tokens.checkAll()
    signIns.checkAll()
    reportRoster()
  }
  function roster(): Roster {
    const open = directory.sessions().map(({ name, owner, agent, project, servers }) => {
      return { name, owner, agent, project, servers, rules: [] as [] }
    })
    const agents = directory.agents().map(({ name, owner }) => ({ name, owner }))
    const administrators = directory.users().filter(({ role }) => role === 'administrator')
    return { agents, sessions: open, administrators: administrators.map(({ name }) => name) }
  }
  let lastRoster = JSON.stringify(roster())
  const rosterListeners = new Set<() => void>()
  function reportRoster(): void {
    const now = JSON.stringify(roster())
    if (now === lastRoster) return
    lastRoster = now
    for (const listener of rosterListeners) listener()
  }
  const readPeople = inTurn(async () => {
    await directory.readUsers()
    await signIns.read()
  })
  const readSessions = inTurn(() => directory.readSessions())
  const readTokens = inTurn(async () => {
    await directory.readAgents()
    await tokens.read()
  })
  await Promise.all([readPeople(), readSessions(), readTokens()])
  const stops = [
    storage.changes.on('users', readPeople),
    storage.changes.on('sessions', readSessions),
    storage.changes.on('tokens', readTokens),
  ]
  let stopChecking = clock.after(checkEvery, check)
  function check(): void {
    checkAll()
    stopChecking = clock.after(checkEvery, check)
  }
  if (parts.firstPassword && users.list().length === 0) await makeFirst(users, parts.firstPassword)

  function findId(key: string): string | undefined {
    const name = key.slice(key.indexOf(':') + 1)
    if (key.startsWith('user:')) return directory.findUser(name)?.id
    if (key.startsWith('agent:')) return directory.findAgent(name)?.id
    return key.startsWith('session:') ? toPrincipalId({ kind: 'session', name }) : undefined
  }
  function idOf(principal: Principal): string {
    return principal.id ?? findId(toPrincipalKey(principal)) ?? toPrincipalId(principal)
  }

  return {
    authenticate(bearer) {
      const principal = tokens.authenticate(bearer)
      ended.delete(principal) // a disabled user may have been enabled again
      return principal
    },
    demandCurrent(principal) {
      if (!ended.has(principal)) return
      if (principal.person) throw new GatewayError('sign-in-needed', 'This sign-in has ended')
      throw new GatewayError('token-invalid', 'This token is no longer valid')
    },
    tokens,
    users,
    agents,
    sessions,
    subjects: createSubjects({
      storage,
      directory,
      hasProject: (name) => configured?.findProjectOwners(name) !== undefined,
    }),
    remover: createIdentityRemover({ storage, tokens }),
    idsOf: (user) => directory.idsOwnedBy(idOf(user)),
    idOf,
    findId,
    findSession: directory.findSession,
    signIns,
    setup: createSetup({ users, clock, ids }),
    prove: ({ url, challenge }) => toProof({ digest: admin.digest, url, challenge }),
    roster,
    onRoster(listener) {
      rosterListeners.add(listener)
      return () => rosterListeners.delete(listener)
    },
    onRevoked(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    close() {
      stopChecking()
      for (const stop of stops) stop()
      listeners.clear()
      rosterListeners.clear()
    },
  }
}

async function makeFirst(users: Users, password: string): Promise<void> {
  await users.addFirst({ name: 'admin', password }).catch((error: unknown) => {
    const { code, message } = toGatewayError(error)
    if (code !== 'request-invalid') throw error
    throw new GatewayError('config-invalid', `SALLYPORT_ADMIN_PASSWORD: ${message}`)
  })
}

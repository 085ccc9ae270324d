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
import { tokenFile } from './rights.ts'
import { createSessions, type SessionOrigin, type Sessions } from './sessions.ts'
import { createSetup, type Setup } from './setup.ts'
import { createSignIns, type SignIns } from './sign-ins.ts'
import { createSubjects, type Subjects } from './subjects.ts'
import { createTokens, type WantedToken } from './tokens.ts'
import { createUsers, type Users } from './users.ts'

export { toBearer } from './bearer.ts'
export type { PasswordCost } from './passwords.ts'
export { longestSignIn } from './sign-ins.ts'

export type Identity = {
  /** Whose token this is; throws `token-missing` or `token-invalid`. */
  authenticate(bearer: string | undefined): Principal
  /** Throws if the token or sign-in of this principal has ended since it was accepted, for example while a body was sent. */
  demandCurrent(principal: Principal): void
  /** `by` is who asked for it, for the record, and to see that it is theirs to ask. */
  createToken(wanted: WantedToken, by?: Principal): Promise<NewToken>
  listTokens(by?: Principal): Token[]
  /** Holds at once, before it is written down. */
  revokeToken(id: string, by?: Principal): Promise<Token>
  readonly users: Omit<Users, 'addFirst'>
  readonly agents: Agents
  readonly subjects: Subjects
  readonly remover: Remover
  /** The ids of a user and of the agents and sessions that the user owns. */
  idsOf(user: Principal): string[]
  /** The id of a principal. A program that embeds the gateway names principals without one: whoever has the name is meant. */
  idOf(principal: Principal): string
  /** The id behind `agent:reviewer` or `user:kim`; undefined if nobody has that name. */
  findId(key: string): string | undefined
  readonly sessions: Sessions
  /** One that is open, from memory: its settings stand in no file. */
  findSession(name: string): Pick<KnownSession, 'owner' | 'agent' | 'project' | 'servers'> | undefined
  /** Who there is that no file knows. */
  roster(): Roster
  /** The roster is another one than before. */
  onRoster(listener: () => void): () => void
  readonly signIns: Pick<SignIns, 'signIn' | 'authenticate' | 'signOut'>
  readonly setup: Setup
  /** Shows a command on this machine that the gateway at this address knows the token of the data folder. */
  prove(question: { url: string; challenge: string }): string
  /** What a principal has open must end: its token or sign-in no longer counts. The object is the one it was given. */
  onRevoked(listener: (principal: Principal) => void): () => void
  close(): void
}

export type IdentityParts = {
  readonly storage: Pick<Storage, 'tokens' | 'users' | 'signIns' | 'agents' | 'sessions' | 'audit' | 'changes'>
  readonly folder: string
  readonly clock: Clock
  readonly ids: Ids
  /** `SALLYPORT_ADMIN_PASSWORD`: at the very first start it makes the administrator `admin`. */
  readonly firstPassword?: string | undefined
  /** What the configuration says of agents and projects. */
  readonly configured?: Configured
  readonly passwordCost?: PasswordCost
}

export type Configured = {
  hasAgent(name: string): boolean
  findProjectOwners(name: string): readonly string[] | undefined
  /** Throws unless somebody may have a session state these servers. */
  judgeServers(by: Principal, session: SessionOrigin, servers: SessionServers): void
}

export type Roster = {
  readonly agents: readonly { readonly name: string; readonly owner?: string }[]
  readonly sessions: readonly (Pick<KnownSession, 'name' | 'owner' | 'agent' | 'project' | 'servers'> & {
    readonly rules: []
  })[]
  /** Users who may everything; what is theirs is trusted like the global settings. */
  readonly administrators: readonly string[]
}

/** Expiry needs nobody who asks: what is open ends within so long. */
const lookEvery = 5000

export async function createIdentity(parts: IdentityParts): Promise<Identity> {
  const { storage, folder, clock, ids, configured } = parts
  const admin = await loadAdminToken(folder, ids)
  const listeners = new Set<(principal: Principal) => void>()
  /** Principals whose token or sign-in no longer counts; each token and each sign-in has one object. */
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
    projectOwners(name) {
      const owners = configured?.findProjectOwners(name)
      if (owners) return owners
      throw new GatewayError('not-found', `No project is named ${name}`)
    },
  })

  /** One reading after the other: one that began earlier must not overwrite what a later one brought. */
  let last: Promise<void> = Promise.resolve()
  function inTurn(read: () => Promise<void>): () => Promise<void> {
    return () => {
      const turn = last.then(read).then(judge)
      last = turn.catch(() => undefined)
      return turn
    }
  }
  function judge(): void {
    directory.expire(clock.now())
    tokens.judge()
    signIns.judge()
    tellRoster()
  }
  function roster(): Roster {
    const open = directory.sessions().map(({ name, owner, agent, project, servers }) => {
      return { name, owner, agent, project, servers, rules: [] as [] }
    })
    const agents = directory.agents().map(({ name, owner }) => ({ name, owner }))
    const administrators = directory.users().filter(({ role }) => role === 'administrator')
    return { agents, sessions: open, administrators: administrators.map(({ name }) => name) }
  }
  let told = JSON.stringify(roster())
  const rosterListeners = new Set<() => void>()
  function tellRoster(): void {
    const now = JSON.stringify(roster())
    if (now === told) return
    told = now
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
  let stopLooking = clock.after(lookEvery, look)
  function look(): void {
    judge()
    stopLooking = clock.after(lookEvery, look)
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
      ended.delete(principal) // a user who was enabled again
      return principal
    },
    demandCurrent(principal) {
      if (!ended.has(principal)) return
      if (principal.person) throw new GatewayError('sign-in-needed', 'This sign-in has ended')
      throw new GatewayError('token-invalid', 'This token is not valid any more')
    },
    createToken: (wanted, by = tokenFile) => tokens.create(wanted, by),
    listTokens: (by = tokenFile) => tokens.list(by),
    revokeToken: (id, by = tokenFile) => tokens.revoke(id, by),
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
      stopLooking()
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

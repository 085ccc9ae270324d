import { timingSafeEqual } from 'node:crypto'
import { GatewayError } from '../contract/errors.ts'
import { type Principal, toPrincipalId, toPrincipalKey } from '../contract/principal.ts'
import { AgentName, type NewToken, type Token } from '../contract/token.ts'
import { type Clock, toIso } from '../lib/clock.ts'
import type { Ids } from '../lib/ids.ts'
import type { Storage } from '../storage/storage.ts'
import type { StoredToken } from '../storage/tables/tokens.ts'
import type { AdminToken } from './admin-token.ts'
import type { Directory, KnownAgent } from './directory.ts'
import { administers, adminToken, manages, oversees, toOwner } from './rights.ts'
import { createTokenText, findTokenId, toDigest, toTokenPrefix } from './token-text.ts'

export type Tokens = {
  authenticate(bearer: string | undefined): Principal
  create(by: Principal, wanted: WantedToken): Promise<NewToken>
  list(by: Principal): Token[]
  revoke(by: Principal, id: string): Promise<Token>
  /** The prefixes of an agent's tokens that are not revoked. */
  labelsOf(agentId: string): string[]
  /** The number of valid tokens of an agent. */
  countOf(agentId: string): number
  read(): Promise<void>
  /** Updates the owner and the validity of each token, and reports tokens that have become invalid to `onRevoked`. */
  checkAll(): void
  /** Ends the tokens of a session at once, before the end is stored. */
  endOf(session: string): void
}

export type WantedToken = { agent?: string; session?: string; owner?: string; expiresAt?: string }

export type TokensParts = {
  readonly storage: Pick<Storage, 'tokens' | 'changes'>
  readonly directory: Directory
  readonly admin: AdminToken
  readonly clock: Clock
  readonly ids: Ids
  /**
   * Whether the configuration has settings for an agent of this name. Only administrators may create a token for it
   * while the agent does not exist.
   */
  isConfigured(agent: string): boolean
  /** Called when a token becomes invalid. Open requests of this principal must end. */
  onRevoked(principal: Principal): void
}

/** A stored token with the data that authentication needs. */
type KnownToken = {
  readonly digest: Buffer
  /** Always the same object, because open requests of a token are found by it. */
  readonly principal: Principal
  stored: StoredToken
  /**
   * The agent was removed or the session has ended. Then the token belongs to nobody, even if a new agent or session
   * has the name.
   */
  gone: boolean
  /** Why the token is invalid although it is neither revoked nor expired. */
  blocked: string | undefined
  reported: boolean
}

const usedEvery = 60_000
/** Caches verified token texts, so that the digest is not computed for every request. */
const mostProven = 1000
/**
 * The token of an ended session is kept in memory for an hour, so that the error can say that it has expired or was
 * revoked.
 */
const keepEnded = 3_600_000

export function createTokens(parts: TokensParts): Tokens {
  const { storage, directory, admin, clock, ids } = parts
  const tokens = new Map<string, KnownToken>()
  const proven = new Map<string, KnownToken>()

  function remember(stored: StoredToken): void {
    const known = tokens.get(stored.id)
    if (!known) return void tokens.set(stored.id, toKnown(stored))
    const lastUsedAt = Math.max(stored.lastUsedAt ?? 0, known.stored.lastUsedAt ?? 0) || undefined
    // A token that was revoked in memory stays revoked, even if the revocation could not be stored.
    known.stored = { ...stored, lastUsedAt, revokedAt: known.stored.revokedAt ?? stored.revokedAt }
  }

  function toKnown(stored: StoredToken): KnownToken {
    const { kind, name, holderId } = stored
    return {
      stored,
      digest: Buffer.from(stored.hash, 'hex'),
      principal: { kind, name, id: holderId },
      gone: false,
      blocked: undefined,
      reported: false,
    }
  }

  /** Caches only that a text belongs to this token. Whether the token is valid is checked for every request. */
  function rememberProof(text: string, known: KnownToken): void {
    const [oldest] = proven.keys()
    if (oldest !== undefined && proven.size >= mostProven) proven.delete(oldest)
    proven.set(text, known)
  }

  function prove(id: string, digest: Buffer, text: string): KnownToken {
    const known = tokens.get(id)
    if (!known || !timingSafeEqual(known.digest, digest)) throw invalid('This token does not exist')
    rememberProof(text, known)
    return known
  }

  function admit(known: KnownToken): Principal {
    const { stored } = known
    const now = clock.now()
    if (stored.revokedAt !== undefined) throw invalid('This token was revoked')
    if (stored.expiresAt !== undefined && stored.expiresAt <= now) throw invalid('This token has expired')
    if (known.blocked !== undefined) throw invalid(known.blocked)
    if (now - (stored.lastUsedAt ?? 0) >= usedEvery) {
      known.stored = { ...stored, lastUsedAt: now }
      storage.tokens.markUsed(stored.id, now)
    }
    return known.principal
  }

  /** Updates the owner and project of the token's principal in place, so that open requests see the change at once. */
  function bind(known: KnownToken): void {
    const { principal } = known
    const session = known.stored.kind === 'session' ? directory.findSession(known.stored.name) : undefined
    const holder = session ?? findAgent(known.stored)
    // The owner stays when the agent or session is gone: a principal without an owner would belong to the
    // administrators.
    if (holder && holder.owner === undefined) delete principal.owner
    if (holder?.owner !== undefined) principal.owner = holder.owner
    if (session?.project !== undefined) principal.project = session.project
    known.gone = holder === undefined
    known.blocked = findBlock(known.stored, holder)
  }

  /** The agent of the token. After a removal another agent can have the same name, so the id is compared. */
  function findAgent({ kind, name, holderId }: StoredToken): KnownAgent | undefined {
    const agent = kind === 'agent' ? directory.findAgent(name) : undefined
    return agent?.id === holderId ? agent : undefined
  }

  function findBlock({ kind }: StoredToken, holder: { readonly owner?: string } | undefined): string | undefined {
    if (!holder) return kind === 'session' ? 'This session has ended' : 'This agent was removed'
    const { owner } = holder
    if (owner !== undefined && !directory.findActive(owner))
      return `The user ${owner}, who owns this token, is disabled or was removed`
    return undefined
  }

  function checkAll(): void {
    const now = clock.now()
    for (const known of tokens.values()) {
      bind(known)
      const { revokedAt, expiresAt, kind, id } = known.stored
      const over = Math.min(revokedAt ?? Number.POSITIVE_INFINITY, expiresAt ?? Number.POSITIVE_INFINITY)
      const valid = over > now && known.blocked === undefined
      if (!valid && !known.reported) parts.onRevoked(known.principal)
      known.reported = !valid
      if (kind === 'session' && over + keepEnded < now) tokens.delete(id)
    }
    for (const [text, { stored }] of proven) if (stored.revokedAt !== undefined) proven.delete(text)
  }

  function isManaged({ gone, principal }: KnownToken, by: Principal): boolean {
    return administers(by) || (!gone && manages(by, principal.owner))
  }

  function endAtOnce(known: KnownToken, revokedAt: number): void {
    known.stored = { ...known.stored, revokedAt: known.stored.revokedAt ?? revokedAt }
  }

  async function read(): Promise<void> {
    for (const stored of await storage.tokens.all()) remember(stored)
  }

  /** The agent that a token is for. `isNew`: it must be added. Throws unless `by` may make tokens for the agent. */
  function toAgentFor(name: string, wanted: WantedToken, by: Principal): { agent: KnownAgent; isNew: boolean } {
    const agent = directory.findAgent(name)
    const taken = agent ? !manages(by, agent.owner) : parts.isConfigured(name)
    if (taken && !administers(by))
      throw new GatewayError(
        'forbidden',
        `The agent ${name} belongs to another user or is reserved in the configuration`,
      )
    if (!agent) {
      const owner = toOwner(by, wanted.owner)
      const ownerId = owner === undefined ? undefined : directory.demandUser(owner).id
      const made = { createdAt: clock.now(), createdBy: toPrincipalKey(by) }
      return { agent: { id: ids.next('agent'), name, owner, ownerId, ...made }, isNew: true }
    }
    if (wanted.owner === undefined || wanted.owner === agent.owner) return { agent, isNew: false }
    throw new GatewayError(
      'request-invalid',
      `The agent ${name} has another owner; change the owner with \`agents change\``,
    )
  }

  async function store(stored: StoredToken, newAgent: KnownAgent | undefined, by: Principal): Promise<boolean> {
    const principal = toPrincipalKey(by)
    const expiresAt = stored.expiresAt === undefined ? undefined : toIso(stored.expiresAt)
    const body = { action: 'token-created', [stored.kind]: stored.name, expiresAt }
    const added = newAgent && {
      agent: newAgent,
      change: { principal, subject: `agent:${newAgent.name}`, body: { action: 'agent-added', owner: newAgent.owner } },
    }
    return storage.tokens.add(stored, { principal, subject: `token:${stored.id}`, body }, added)
  }

  async function create(by: Principal, wanted: WantedToken): Promise<NewToken> {
    const now = clock.now()
    const { kind, name } = toHolder(wanted)
    const asked = wanted.expiresAt === undefined ? undefined : parseExpiry(wanted.expiresAt, now)
    const expiresAt = kind === 'session' ? toSessionExpiry(name, asked, by) : asked
    const { id, text, digest } = createTokenText(ids)
    const prefix = toTokenPrefix(id)
    const hash = digest.toString('hex')
    const made = { createdAt: now, createdBy: toPrincipalKey(by), expiresAt }
    for (let attempt = 0; ; attempt++) {
      const found = kind === 'agent' ? toAgentFor(name, wanted, by) : undefined
      const holderId = found?.agent.id ?? toPrincipalId({ kind, name })
      const stored: StoredToken = { id, kind, name, holderId, prefix, hash, ...made }
      if (await store(stored, found?.isNew ? found.agent : undefined, by)) {
        await storage.changes.announce('tokens')
        return { ...toToken(stored), token: text }
      }
      if (attempt > 0) throw new GatewayError('name-taken', `Another request added the agent ${name} at the same time`)
      await storage.changes.announce('tokens')
    }
  }

  function toSessionExpiry(name: string, asked: number | undefined, by: Principal): number {
    const session = directory.findSession(name)
    if (!session || !manages(by, session.owner)) throw new GatewayError('not-found', `No open session is named ${name}`)
    return Math.min(asked ?? session.expiresAt, session.expiresAt)
  }

  function toToken({ id, kind, name, prefix, ...stored }: StoredToken): Token {
    const { createdAt, createdBy, lastUsedAt, expiresAt, revokedAt } = stored
    return {
      id,
      [kind]: name,
      owner: tokens.get(id)?.principal.owner,
      prefix,
      createdAt: toIso(createdAt),
      createdBy,
      lastUsedAt: lastUsedAt === undefined ? undefined : toIso(lastUsedAt),
      expiresAt: expiresAt === undefined ? undefined : toIso(expiresAt),
      revokedAt: revokedAt === undefined ? undefined : toIso(revokedAt),
    }
  }

  return {
    authenticate(bearer) {
      if (bearer === undefined || bearer === '') throw new GatewayError('token-missing', 'The request has no token')
      const known = proven.get(bearer)
      if (known) return admit(known)
      const id = findTokenId(bearer)
      if (id === undefined) throw invalid('This is not a token of this gateway')
      const digest = toDigest(bearer)
      if (id === admin.id && timingSafeEqual(admin.digest, digest)) return adminToken
      return admit(prove(id, digest, bearer))
    },
    create,
    list(by) {
      const seen = [...tokens.values()].filter((known) => oversees(by) || isManaged(known, by))
      return seen.map(({ stored }) => toToken(stored))
    },
    async revoke(by, id) {
      const known = tokens.get(id)
      // The same error as for a missing token, so that the ids of other users' tokens stay hidden.
      if (!known || !isManaged(known, by)) throw new GatewayError('not-found', `No token has the id ${id}`)
      endAtOnce(known, clock.now())
      checkAll()
      const { kind, name, revokedAt = clock.now() } = known.stored
      const body = { action: 'token-revoked', [kind]: name }
      // Also stored when the token is already revoked in memory: an earlier write may have failed.
      await storage.tokens.revoke(id, revokedAt, { principal: toPrincipalKey(by), subject: `token:${id}`, body })
      await storage.changes.announce('tokens')
      return toToken(known.stored)
    },
    labelsOf: (agentId) =>
      [...tokens.values()].flatMap(({ stored: { holderId, revokedAt, prefix } }) =>
        holderId === agentId && revokedAt === undefined ? [`${prefix}…`] : [],
      ),
    countOf(agentId) {
      const now = clock.now()
      return [...tokens.values()].filter(({ stored: { holderId, revokedAt, expiresAt } }) => {
        return holderId === agentId && revokedAt === undefined && !(expiresAt !== undefined && expiresAt <= now)
      }).length
    },
    read,
    checkAll,
    endOf(session) {
      const now = clock.now()
      for (const known of tokens.values()) {
        if (known.stored.kind === 'session' && known.stored.name === session) endAtOnce(known, now)
      }
      checkAll()
    },
  }
}

function toHolder({ agent, session }: WantedToken): { kind: 'agent' | 'session'; name: string } {
  if ((agent === undefined) === (session === undefined))
    throw new GatewayError('request-invalid', 'A token needs either an agent or a session')
  return session === undefined
    ? { kind: 'agent', name: parseName('agent', agent ?? '') }
    : { kind: 'session', name: session }
}

export function parseName(what: 'agent' | 'session', text: string): string {
  const name = AgentName.safeParse(text)
  if (name.success) return name.data
  throw new GatewayError(
    'request-invalid',
    `The name of the ${what} ${name.error.issues[0]?.message ?? 'is not valid'}`,
  )
}

export function parseExpiry(text: string, now: number): number {
  const expiresAt = Date.parse(text)
  if (expiresAt > now) return expiresAt
  throw new GatewayError('request-invalid', 'expiresAt must be a time in the future, such as 2030-01-31T12:00:00Z')
}

function invalid(message: string): GatewayError {
  return new GatewayError('token-invalid', message)
}

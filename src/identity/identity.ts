import { timingSafeEqual } from 'node:crypto'
import { GatewayError } from '../contract/errors.ts'
import type { Principal, PrincipalKey } from '../contract/principal.ts'
import { AgentName, type NewToken, type Token } from '../contract/token.ts'
import { type Clock, toIso } from '../lib/clock.ts'
import type { Ids } from '../lib/ids.ts'
import type { Storage } from '../storage/storage.ts'
import type { StoredToken } from '../storage/tokens.ts'
import { loadAdminToken } from './admin-token.ts'
import { createTokenText, findTokenId, toDigest, toTokenPrefix } from './token-text.ts'

export { toBearer } from './bearer.ts'

export type Identity = {
  /** Whose token this is; throws `token-missing` or `token-invalid`. */
  authenticate(bearer: string | undefined): Principal
  /** `by` is who asked for it, for the record. */
  createToken(wanted: { agent: string; expiresAt?: string }, by?: PrincipalKey): Promise<NewToken>
  listTokens(): Token[]
  /** Holds at once, before it is written down. */
  revokeToken(id: string, by?: PrincipalKey): Promise<Token>
  /** The agents that have a token that is not revoked. */
  agents(): string[]
}

type IdentityParts = { storage: Pick<Storage, 'tokens'>; folder: string; clock: Clock; ids: Ids }

/** A stored token and what authenticating needs of it at hand. */
type KnownToken = { readonly digest: Buffer; readonly principal: Principal; stored: StoredToken }

const usedEvery = 60_000
/** Texts whose digest need not be made again for every request. */
const mostProven = 1000
const administrator: Principal = { kind: 'user', name: 'admin-token', role: 'administrator' }
const administratorKey: PrincipalKey = 'user:admin-token'

export async function createIdentity({ storage, folder, clock, ids }: IdentityParts): Promise<Identity> {
  const admin = await loadAdminToken(folder, ids)
  const tokens = new Map<string, KnownToken>()
  const proven = new Map<string, KnownToken>()
  for (const stored of await storage.tokens.all()) remember(stored, Buffer.from(stored.hash, 'hex'))

  function remember(stored: StoredToken, digest: Buffer): void {
    tokens.set(stored.id, { digest, stored, principal: { kind: 'agent', name: stored.agent } })
  }

  /** Only that a text is the one of this token is remembered; whether the token still counts is asked every time. */
  function rememberProof(text: string, known: KnownToken): void {
    const [oldest] = proven.keys()
    if (oldest !== undefined && proven.size >= mostProven) proven.delete(oldest)
    proven.set(text, known)
  }

  function prove(id: string, digest: Buffer, text: string): KnownToken {
    const known = tokens.get(id)
    if (!known || !timingSafeEqual(known.digest, digest)) throw invalid('This token is not known')
    rememberProof(text, known)
    return known
  }

  function admit(known: KnownToken): Principal {
    const { stored } = known
    const now = clock.now()
    if (stored.revokedAt !== undefined) throw invalid('This token was revoked')
    if (stored.expiresAt !== undefined && stored.expiresAt <= now) throw invalid('This token has expired')
    if (now - (stored.lastUsedAt ?? 0) >= usedEvery) {
      known.stored = { ...stored, lastUsedAt: now }
      storage.tokens.markUsed(stored.id, now)
    }
    return known.principal
  }

  return {
    authenticate(bearer) {
      if (bearer === undefined || bearer === '') throw new GatewayError('token-missing', 'The request has no token')
      const known = proven.get(bearer)
      if (known) return admit(known)
      const id = findTokenId(bearer)
      if (id === undefined) throw invalid('This is not a token of this gateway')
      const digest = toDigest(bearer)
      if (id === admin.id && timingSafeEqual(admin.digest, digest)) return administrator
      return admit(prove(id, digest, bearer))
    },
    async createToken(wanted, by = administratorKey) {
      const now = clock.now()
      const agent = parseAgent(wanted.agent)
      const expiresAt = wanted.expiresAt === undefined ? undefined : parseExpiry(wanted.expiresAt, now)
      const { id, text, digest } = createTokenText(ids)
      const stored = { id, agent, prefix: toTokenPrefix(id), hash: digest.toString('hex'), createdAt: now, expiresAt }
      const token = toToken(stored)
      const body = { action: 'token-created', agent, expiresAt: token.expiresAt }
      await storage.tokens.add(stored, { principal: by, subject: `token:${id}`, body })
      remember(stored, digest)
      return { ...token, token: text }
    },
    listTokens: () => [...tokens.values()].map(({ stored }) => toToken(stored)),
    async revokeToken(id, by = administratorKey) {
      const known = tokens.get(id)
      if (!known) throw new GatewayError('not-found', 'No token has this id')
      const { agent, revokedAt = clock.now() } = known.stored
      known.stored = { ...known.stored, revokedAt }
      for (const [text, other] of proven) if (other === known) proven.delete(text)
      const body = { action: 'token-revoked', agent }
      // Asked for again as well: the first time may have failed to be written.
      await storage.tokens.revoke(id, revokedAt, { principal: by, subject: `token:${id}`, body })
      return toToken(known.stored)
    },
    agents() {
      const valid = [...tokens.values()].filter(({ stored }) => stored.revokedAt === undefined)
      return [...new Set(valid.map(({ stored }) => stored.agent))].sort()
    },
  }
}

function parseAgent(name: string): string {
  const agent = AgentName.safeParse(name)
  if (agent.success) return agent.data
  throw new GatewayError('request-invalid', `The name of the agent ${agent.error.issues[0]?.message ?? 'is not valid'}`)
}

function parseExpiry(text: string, now: number): number {
  const expiresAt = Date.parse(text)
  if (expiresAt > now) return expiresAt
  throw new GatewayError('request-invalid', 'expiresAt must be a time in the future, such as 2030-01-31T12:00:00Z')
}

function toToken({ id, agent, prefix, createdAt, lastUsedAt, expiresAt, revokedAt }: StoredToken): Token {
  return {
    id,
    agent,
    prefix,
    createdAt: toIso(createdAt),
    lastUsedAt: lastUsedAt === undefined ? undefined : toIso(lastUsedAt),
    expiresAt: expiresAt === undefined ? undefined : toIso(expiresAt),
    revokedAt: revokedAt === undefined ? undefined : toIso(revokedAt),
  }
}

function invalid(message: string): GatewayError {
  return new GatewayError('token-invalid', message)
}

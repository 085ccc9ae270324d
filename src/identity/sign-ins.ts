import { timingSafeEqual } from 'node:crypto'
import { GatewayError } from '../contract/errors.ts'
import type { Principal } from '../contract/principal.ts'
import type { Clock } from '../lib/clock.ts'
import type { Ids } from '../lib/ids.ts'
import type { Storage } from '../storage/storage.ts'
import type { StoredSignIn } from '../storage/tables/sign-ins.ts'
import type { StoredUser } from '../storage/tables/users.ts'
import { createAttempts } from './attempts.ts'
import type { Directory } from './directory.ts'
import type { Passwords } from './passwords.ts'
import { toDigest } from './token-text.ts'

export type SignIns = {
  /** Returns the value of the cookie. Throws `sign-in-failed`, or `limit-exceeded` after too many attempts. */
  signIn(wanted: { name: string; password: string; address: string }): Promise<NewSignIn>
  /** The signed-in user of a cookie. Throws `sign-in-needed`. */
  authenticate(cookie: string): Promise<Principal>
  /** Takes effect at once, before it is stored. */
  signOut(person: Principal): Promise<void>
  read(): Promise<void>
  /** Reports the sign-ins that have become invalid to `onRevoked`. */
  checkAll(): void
}

export type NewSignIn = { readonly cookie: string; readonly principal: Principal; readonly expiresAt: number }

type SignInsParts = {
  readonly storage: Pick<Storage, 'signIns' | 'audit' | 'changes'>
  readonly directory: Directory
  readonly passwords: Passwords
  readonly clock: Clock
  readonly ids: Ids
  onRevoked(principal: Principal): void
}

type KnownSignIn = { readonly digest: Buffer; readonly principal: Principal; stored: StoredSignIn }

const hour = 3_600_000
export const longestSignIn = 7 * 24 * hour
const longestIdle = 12 * hour
const usedEvery = 60_000
const mostOfUser = 50
const form = /^([0-9a-z]{10})\.[A-Za-z0-9_-]{43}$/

export function createSignIns(parts: SignInsParts): SignIns {
  const { storage, directory, passwords, clock, ids } = parts
  const attempts = createAttempts(clock)
  const known = new Map<string, KnownSignIn>()

  function remember(stored: StoredSignIn): void {
    const before = known.get(stored.id)
    const role = findUser(stored)?.role
    if (!before) {
      const principal: Principal = { kind: 'user', name: stored.user, id: stored.userId, role, person: true }
      known.set(stored.id, { stored, digest: Buffer.from(stored.hash, 'hex'), principal })
      return
    }
    const lastUsedAt = Math.max(stored.lastUsedAt, before.stored.lastUsedAt)
    before.stored = { ...stored, lastUsedAt, revokedAt: before.stored.revokedAt ?? stored.revokedAt }
  }

  /** The user of the sign-in. After a removal another user can have the same name, so the id is compared. */
  function findUser({ user, userId }: StoredSignIn): StoredUser | undefined {
    const found = directory.findActive(user)
    return found?.id === userId ? found : undefined
  }

  function hasEnded(signIn: StoredSignIn): boolean {
    const { revokedAt, expiresAt, lastUsedAt } = signIn
    const now = clock.now()
    const spent = expiresAt <= now || lastUsedAt + longestIdle <= now
    return revokedAt !== undefined || spent || findUser(signIn) === undefined
  }

  function forget(signIn: KnownSignIn): void {
    if (known.delete(signIn.stored.id)) parts.onRevoked(signIn.principal)
  }

  async function refuse(name: string, address: string): Promise<never> {
    // An unknown name is not recorded: it may be a password that was typed into the wrong field.
    const subject = directory.findUser(name) ? `user:${name}` : 'user:unknown'
    await storage.audit.append({ principal: subject, subject, body: { action: 'sign-in-refused', address } })
    throw new GatewayError('sign-in-failed', 'The name or the password is wrong')
  }

  /** Ends the sign-in that has not been used for the longest time. */
  async function makeRoom(user: string): Promise<void> {
    const own = [...known.values()].filter(({ stored }) => stored.user === user)
    if (own.length < mostOfUser) return
    const [oldest] = own.sort((left, right) => left.stored.lastUsedAt - right.stored.lastUsedAt)
    if (oldest) await end(oldest)
  }

  async function end(signIn: KnownSignIn): Promise<void> {
    const { id, user } = signIn.stored
    forget(signIn)
    const change = { principal: `user:${user}`, subject: `user:${user}`, body: { action: 'signed-out' } }
    await storage.signIns.revoke(id, clock.now(), change)
  }

  return {
    async signIn({ name, password, address }) {
      const attempt = attempts.begin(name, address)
      const user = directory.findActive(name)
      const right = await passwords.verify(password, user?.password)
      if (!right || !user) return refuse(name, address)
      attempt.succeeded()
      await makeRoom(name)
      const now = clock.now()
      const id = ids.next('sign-in').slice(-10)
      const cookie = `${id}.${ids.secret(32)}`
      const expiresAt = now + longestSignIn
      const hash = toDigest(cookie).toString('hex')
      const stored = { id, hash, user: name, userId: user.id, createdAt: now, lastUsedAt: now, expiresAt }
      const change = { principal: `user:${name}`, subject: `user:${name}`, body: { action: 'signed-in', address } }
      // Fails if the user was disabled or the password was changed while the password was being verified.
      if (!(await storage.signIns.add(stored, user, change))) return refuse(name, address)
      await storage.changes.announce('users')
      const made = known.get(id)
      if (!made) return refuse(name, address)
      return { cookie, principal: made.principal, expiresAt }
    },
    async authenticate(cookie) {
      const signIn = known.get(form.exec(cookie)?.[1] ?? '')
      if (!signIn || !timingSafeEqual(signIn.digest, toDigest(cookie))) throw signInEnded()
      const { id, lastUsedAt } = signIn.stored
      if (hasEnded(signIn.stored)) {
        // Another instance may have recorded a later use.
        const row = await storage.signIns.find(id)
        if (row) remember(row)
        if (!row || hasEnded(signIn.stored)) {
          forget(signIn)
          throw signInEnded()
        }
      }
      const now = clock.now()
      if (now - lastUsedAt >= usedEvery) {
        signIn.stored = { ...signIn.stored, lastUsedAt: now }
        storage.signIns.markUsed(id, now)
      }
      return signIn.principal
    },
    async signOut(person) {
      const signIn = [...known.values()].find(({ principal }) => principal === person)
      if (!signIn) throw signInEnded()
      await end(signIn)
      await storage.changes.announce('users')
    },
    async read() {
      const open = await storage.signIns.open()
      const ids = new Set(open.map(({ id }) => id))
      for (const stored of open) remember(stored)
      for (const signIn of [...known.values()]) if (!ids.has(signIn.stored.id)) forget(signIn)
    },
    checkAll() {
      for (const signIn of [...known.values()]) {
        const { revokedAt, expiresAt } = signIn.stored
        const gone = revokedAt !== undefined || expiresAt <= clock.now()
        if (gone || !findUser(signIn.stored)) forget(signIn)
      }
    },
  }
}

function signInEnded(): GatewayError {
  return new GatewayError('sign-in-needed', 'This sign-in has ended')
}

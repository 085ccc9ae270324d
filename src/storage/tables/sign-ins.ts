import { type Database, type SignInsTable, toStatement } from '../database.ts'
import type { Writer } from '../writer.ts'
import { type Change, toChangeEntry } from './audit.ts'

/** A sign-in in a browser, or at a terminal for one command. Stores only the digest of the cookie. */
export type StoredSignIn = {
  readonly id: string
  readonly hash: string
  readonly user: string
  readonly userId: string
  readonly createdAt: number
  readonly lastUsedAt: number
  readonly expiresAt: number
  readonly revokedAt?: number
}

export type SignInStore = {
  /** Sign-ins that have not ended or expired. */
  open(): Promise<StoredSignIn[]>
  find(id: string): Promise<StoredSignIn | undefined>
  /** False if the user was changed after the password was verified. */
  add(signIn: StoredSignIn, user: { id: string; revision: number }, change: Change): Promise<boolean>
  revoke(id: string, at: number, change: Change): Promise<boolean>
  markUsed(id: string, at: number): void
}

type SignInStoreParts = { database: Database; writer: Writer; now(): number }

export function createSignInStore({ database, writer, now }: SignInStoreParts): SignInStore {
  return {
    async open() {
      const rows = await database
        .selectFrom('sign_ins')
        .selectAll()
        .where('revoked_at', 'is', null)
        .where('expires_at', '>', now())
        .orderBy('created_at')
        .execute()
      return rows.map(toStoredSignIn)
    },
    async find(id) {
      const row = await database.selectFrom('sign_ins').selectAll().where('id', '=', id).executeTakeFirst()
      return row && toStoredSignIn(row)
    },
    async add(signIn, { id, revision }, change) {
      const unchanged = database
        .updateTable('users')
        .set({ signed_in_at: signIn.createdAt })
        .where('id', '=', id)
        .where('revision', '=', revision)
        .where('disabled_at', 'is', null)
        .where('removed_at', 'is', null)
      const outcome = await writer.commit([
        toStatement(unchanged, 1),
        toStatement(database.insertInto('sign_ins').values(toRow(signIn)), 1),
        // Expired sign-ins are not needed any more. The audit shows when they began.
        toStatement(database.deleteFrom('sign_ins').where('expires_at', '<=', now())),
        { entry: toChangeEntry(change, now()) },
      ])
      return outcome.kind === 'done'
    },
    async revoke(id, at, change) {
      const revoke = database.updateTable('sign_ins').set({ revoked_at: at }).where('id', '=', id)
      const outcome = await writer.commit([
        toStatement(revoke.where('revoked_at', 'is', null), 1),
        { entry: toChangeEntry(change, now()) },
      ])
      return outcome.kind === 'done'
    },
    markUsed: (id, at) =>
      writer.attempt([toStatement(database.updateTable('sign_ins').set({ last_used_at: at }).where('id', '=', id))]),
  }
}

function toRow(signIn: StoredSignIn): SignInsTable {
  return {
    id: signIn.id,
    hash: signIn.hash,
    user_name: signIn.user,
    user_id: signIn.userId,
    created_at: signIn.createdAt,
    last_used_at: signIn.lastUsedAt,
    expires_at: signIn.expiresAt,
    revoked_at: signIn.revokedAt ?? null,
  }
}

function toStoredSignIn(row: SignInsTable): StoredSignIn {
  return {
    id: row.id,
    hash: row.hash,
    user: row.user_name,
    userId: row.user_id,
    createdAt: row.created_at,
    lastUsedAt: row.last_used_at,
    expiresAt: row.expires_at,
    revokedAt: row.revoked_at ?? undefined,
  }
}

import { type ExpressionBuilder, sql } from 'kysely'
import { z } from 'zod'
import { parseJson } from '../../lib/json.ts'
import { type Database, type SecretsTable, type Tables, toStatement } from '../database.ts'
import type { Statement } from '../unit.ts'
import type { Writer } from '../writer.ts'
import { type Change, toChangeEntry } from './audit.ts'

/** A stored secret. Its value is encrypted. Times are milliseconds. */
export type StoredSecret = {
  readonly id: string
  readonly scope: string
  /** The id of the user, if the scope is a user; undefined for every other scope. */
  readonly ownerId?: string | undefined
  readonly name: string
  readonly ciphertext: string
  readonly keyVersion: number
  readonly hosts: readonly string[]
  readonly servers: readonly string[]
  /** Whether the value is long enough to be masked. */
  readonly masked: boolean
  readonly createdAt: number
  readonly createdBy: string
  readonly updatedAt: number
  readonly updatedBy: string
  readonly lastUsedAt?: number
}

/** A key version, and a proof to recognise its key. */
export type StoredKey = { readonly version: number; readonly proof: string }

/** Selects the secrets of these scopes, and of all sessions of these users. */
export type RemovedSecrets = { readonly scopes: readonly string[]; readonly ownerIds: readonly string[] }

export type SecretStore = {
  all(): Promise<StoredSecret[]>
  find(scope: string, name: string): Promise<StoredSecret | undefined>
  /**
   * False, and nothing is written, if a secret of that name exists in that scope. `instead` is the id of a secret to
   * remove first.
   */
  add(secret: StoredSecret, change: Change, instead?: string): Promise<boolean>
  /** False if the secret no longer exists. */
  replace(secret: StoredSecret, change: Change): Promise<boolean>
  remove(id: string, change: Change): Promise<boolean>
  /** The secrets that a removal removes. */
  allOf(removed: RemovedSecrets): Promise<StoredSecret[]>
  /** A step of a removal. */
  removeAll(removed: RemovedSecrets): Statement
  /** Stores the same value encrypted with another key. False if the secret was changed since it was read. */
  reencrypt(before: StoredSecret, after: Pick<StoredSecret, 'ciphertext' | 'keyVersion'>): Promise<boolean>
  markUsed(id: string, at: number): void
  keys(): Promise<StoredKey[]>
  /** False if another instance already used that version. */
  addKey(key: StoredKey): Promise<boolean>
}

type SecretStoreParts = { database: Database; writer: Writer; now(): number }

export function createSecretStore({ database, writer, now }: SecretStoreParts): SecretStore {
  async function commit(statement: ReturnType<typeof toStatement>, change?: Change): Promise<boolean> {
    const entry = change ? [{ entry: toChangeEntry(change, now()) }] : []
    return (await writer.commit([statement, ...entry])).kind === 'done'
  }

  const isRemoved =
    ({ scopes, ownerIds }: RemovedSecrets) =>
    ({ eb, or }: ExpressionBuilder<Tables, 'secrets'>) => {
      const sessions = database.selectFrom('sessions').select(sql<string>`'session:' || name`.as('scope'))
      return or([
        eb('scope', 'in', [...scopes, '']),
        eb('scope', 'in', sessions.where('owner_id', 'in', [...ownerIds, ''])),
      ])
    }

  return {
    async allOf(removed) {
      const rows = database.selectFrom('secrets').selectAll().where(isRemoved(removed))
      return (await rows.orderBy('scope').orderBy('name').execute()).map(toStoredSecret)
    },
    async all() {
      const rows = await database.selectFrom('secrets').selectAll().orderBy('scope').orderBy('name').execute()
      return rows.map(toStoredSecret)
    },
    async find(scope, name) {
      const found = database.selectFrom('secrets').selectAll().where('scope', '=', scope).where('name', '=', name)
      const row = await found.executeTakeFirst()
      return row && toStoredSecret(row)
    },
    async add(secret, change, instead = '') {
      const outcome = await writer.commit([
        toStatement(database.deleteFrom('secrets').where('id', '=', instead)),
        toStatement(database.insertInto('secrets').values(toRow(secret)), 1),
        { entry: toChangeEntry(change, now()) },
      ])
      return outcome.kind === 'done'
    },
    replace: (secret, change) =>
      commit(toStatement(database.updateTable('secrets').set(toRow(secret)).where('id', '=', secret.id), 1), change),
    remove: (id, change) => commit(toStatement(database.deleteFrom('secrets').where('id', '=', id), 1), change),
    removeAll: (removed) => toStatement(database.deleteFrom('secrets').where(isRemoved(removed))),
    reencrypt: (before, { ciphertext, keyVersion }) =>
      commit(
        toStatement(
          database
            .updateTable('secrets')
            .set({ ciphertext, key_version: keyVersion })
            .where('id', '=', before.id)
            .where('ciphertext', '=', before.ciphertext),
          1,
        ),
      ),
    markUsed: (id, at) =>
      writer.attempt([toStatement(database.updateTable('secrets').set({ last_used_at: at }).where('id', '=', id))]),
    keys: () => database.selectFrom('secret_keys').select(['version', 'proof']).orderBy('version').execute(),
    addKey: ({ version, proof }) =>
      commit(toStatement(database.insertInto('secret_keys').values({ version, proof, created_at: now() }), 1)),
  }
}

function toRow(secret: StoredSecret): SecretsTable {
  return {
    id: secret.id,
    scope: secret.scope,
    owner_id: secret.ownerId ?? null,
    name: secret.name,
    ciphertext: secret.ciphertext,
    key_version: secret.keyVersion,
    hosts: JSON.stringify(secret.hosts),
    servers: JSON.stringify(secret.servers),
    masked: secret.masked ? 1 : 0,
    created_at: secret.createdAt,
    created_by: secret.createdBy,
    updated_at: secret.updatedAt,
    updated_by: secret.updatedBy,
    last_used_at: secret.lastUsedAt ?? null,
  }
}

const Names = z.array(z.string())

function toStoredSecret(row: SecretsTable): StoredSecret {
  return {
    id: row.id,
    scope: row.scope,
    ownerId: row.owner_id ?? undefined,
    name: row.name,
    ciphertext: row.ciphertext,
    keyVersion: row.key_version,
    hosts: Names.parse(parseJson(row.hosts)),
    servers: Names.parse(parseJson(row.servers)),
    masked: row.masked === 1,
    createdAt: row.created_at,
    createdBy: row.created_by,
    updatedAt: row.updated_at,
    updatedBy: row.updated_by,
    lastUsedAt: row.last_used_at ?? undefined,
  }
}

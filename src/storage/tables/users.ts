import { z } from 'zod'
import { Role } from '../../contract/principal.ts'
import { type Database, retiredName, toStatement, type UsersTable } from '../database.ts'
import type { Statement, Unit, UnitOutcome } from '../unit.ts'
import type { Writer } from '../writer.ts'
import { type Change, toChangeEntry } from './audit.ts'

/** A stored user. Times are milliseconds. */
export type StoredUser = {
  readonly id: string
  readonly name: string
  readonly role: Role
  readonly groups: readonly string[]
  /** The salted hash from `identity/passwords.ts`, with its parameters. */
  readonly password: string
  readonly createdAt: number
  readonly createdBy: string
  readonly signedInAt?: number
  readonly disabledAt?: number
  readonly removedAt?: number
  /** Increases with every change, to detect that a user was changed since it was read. */
  readonly revision: number
}

export type UserFields = {
  readonly role?: Role
  readonly groups?: readonly string[]
  readonly password?: string
  /** Null enables the user again. */
  readonly disabledAt?: number | null
}

/** Why nothing was changed: the user was changed since it was read, or no administrator would be left. */
export type UserRefusal = 'conflict' | 'last-administrator'

export type UserStore = {
  /** Includes removed users. */
  all(): Promise<StoredUser[]>
  /** False if a user of this name exists. */
  add(user: StoredUser, change: Change): Promise<boolean>
  /** Adds a user only if there is no administrator. Agents without an owner then belong to this user. */
  addFirst(user: StoredUser, change: Change): Promise<boolean>
  /** Changes a user and ends all sign-ins of that user in the same unit. */
  change(user: StoredUser, fields: UserFields, change: Change): Promise<'done' | UserRefusal>
  /** Steps of a removal. The guards are refused if the user is the last administrator. */
  disable(user: StoredUser): { readonly guards: readonly Statement[]; readonly steps: readonly Statement[] }
  /** Steps of a removal. Afterwards the name is free for another user. */
  retire(id: string): readonly Statement[]
}

type UserStoreParts = { database: Database; writer: Writer; now(): number }

/** The row that serialises changes of the administrators on all instances. */
const lockKey = 'administrators'

export function createUserStore({ database, writer, now }: UserStoreParts): UserStore {
  async function commit(statements: readonly Statement[], change: Change): Promise<UnitOutcome> {
    const unit: Unit = [...statements, { entry: toChangeEntry(change, now()) }]
    const outcome = await writer.commit(unit)
    if (outcome.kind === 'refused' && outcome.by === 'error') throw new Error(outcome.reason)
    return outcome
  }

  function lockAdministrators(): Statement {
    return toStatement(
      database
        .insertInto('memory')
        .values({ key: lockKey, value: '', updated_at: now() })
        .onConflict((conflict) =>
          conflict.column('key').doUpdateSet(({ ref }) => ({ updated_at: ref('excluded.updated_at') })),
        ),
      1,
    )
  }

  /** Must come after `lockAdministrators` in the unit: then the statement sees all earlier commits of other instances. */
  function expectAdministrators(wanted: 'none' | 'some', except: string): Statement {
    const others = database
      .selectFrom('users')
      .select('name')
      .where('role', '=', 'administrator')
      .where('disabled_at', 'is', null)
      .where('removed_at', 'is', null)
      .where('id', '!=', except)
    const guard = database.updateTable('memory').set({ updated_at: now() }).where('key', '=', lockKey)
    return toStatement(
      guard.where(({ exists, not }) => (wanted === 'some' ? exists(others) : not(exists(others)))),
      1,
    )
  }

  function guardsOf(user: StoredUser, fields: UserFields): readonly Statement[] {
    return endsAdministrator(user, fields) ? [lockAdministrators(), expectAdministrators('some', user.id)] : []
  }

  function endSignIns(id: string): Statement {
    const signIns = database.updateTable('sign_ins').set({ revoked_at: now() }).where('user_id', '=', id)
    return toStatement(signIns.where('revoked_at', 'is', null))
  }

  function insert(user: StoredUser): Statement {
    const row = database.insertInto('users').values(toRow(user))
    return toStatement(
      row.onConflict((conflict) => conflict.column('name').doNothing()),
      1,
    )
  }

  return {
    async all() {
      const rows = await database.selectFrom('users').selectAll().orderBy('name').execute()
      return rows.map(toStoredUser)
    },
    async add(user, change) {
      return (await commit([insert(user)], change)).kind === 'done'
    },
    async addFirst(user, change) {
      const adopt = database.updateTable('agents').set({ owner_id: user.id }).where('owner_id', 'is', null)
      const steps = [lockAdministrators(), expectAdministrators('none', ''), insert(user), toStatement(adopt)]
      return (await commit(steps, change)).kind === 'done'
    },
    disable(user) {
      const fields = { disabledAt: user.disabledAt ?? now() }
      const update = database.updateTable('users').set((row) => ({
        ...toColumns(fields),
        revision: row('revision', '+', 1),
      }))
      return {
        guards: guardsOf(user, fields),
        // Expects the revision that was read: if the user has become an administrator since, the guards would be
        // missing.
        steps: [
          toStatement(update.where('id', '=', user.id).where('revision', '=', user.revision), 1),
          endSignIns(user.id),
        ],
      }
    },
    retire: (id) => [
      // Sign-ins have a foreign key on the name of the user, which the next statement changes.
      toStatement(database.deleteFrom('sign_ins').where('user_id', '=', id)),
      toStatement(
        database
          .updateTable('users')
          .set({ removed_at: now(), name: retiredName })
          .where('id', '=', id)
          .where('removed_at', 'is', null),
        1,
      ),
    ],
    async change(user, fields, change) {
      const update = database
        .updateTable('users')
        .set((row) => ({ ...toColumns(fields), revision: row('revision', '+', 1) }))
        .where('id', '=', user.id)
        .where('revision', '=', user.revision)
        .where('removed_at', 'is', null)
      const guards = guardsOf(user, fields)
      const steps = [...guards, toStatement(update, 1), endSignIns(user.id)]
      const outcome = await commit(steps, change)
      if (outcome.kind === 'done') return 'done'
      return outcome.step < guards.length ? 'last-administrator' : 'conflict'
    },
  }
}

function endsAdministrator(user: StoredUser, { role, disabledAt }: UserFields): boolean {
  if (user.role !== 'administrator' || user.disabledAt !== undefined) return false
  return (role !== undefined && role !== 'administrator') || typeof disabledAt === 'number'
}

function toColumns({ role, groups, password, disabledAt }: UserFields): Partial<UsersTable> {
  return {
    ...(role !== undefined && { role }),
    ...(groups !== undefined && { member_of: JSON.stringify(groups) }),
    ...(password !== undefined && { password }),
    ...(disabledAt !== undefined && { disabled_at: disabledAt }),
  }
}

function toRow(user: StoredUser): UsersTable {
  return {
    id: user.id,
    name: user.name,
    role: user.role,
    member_of: JSON.stringify(user.groups),
    password: user.password,
    created_at: user.createdAt,
    created_by: user.createdBy,
    signed_in_at: user.signedInAt ?? null,
    disabled_at: user.disabledAt ?? null,
    removed_at: user.removedAt ?? null,
    revision: user.revision,
  }
}

const Groups = z.array(z.string())

function toStoredUser(row: UsersTable): StoredUser {
  return {
    id: row.id,
    name: row.name,
    role: Role.parse(row.role),
    groups: Groups.parse(JSON.parse(row.member_of)),
    password: row.password,
    createdAt: row.created_at,
    createdBy: row.created_by,
    signedInAt: row.signed_in_at ?? undefined,
    disabledAt: row.disabled_at ?? undefined,
    removedAt: row.removed_at ?? undefined,
    revision: row.revision,
  }
}

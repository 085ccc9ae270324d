import { GatewayError } from '../contract/errors.ts'
import { type Principal, type Role, toPrincipalKey } from '../contract/principal.ts'
import { type User, UserName } from '../contract/user.ts'
import { type Clock, toIso } from '../lib/clock.ts'
import type { Ids } from '../lib/ids.ts'
import type { Storage } from '../storage/storage.ts'
import type { Change } from '../storage/tables/audit.ts'
import type { StoredUser, UserFields } from '../storage/tables/users.ts'
import type { Directory } from './directory.ts'
import { checkPassword, type Passwords } from './passwords.ts'
import { administers, adminToken, demandPerson } from './rights.ts'

/** Only a signed-in administrator can add and change users. Every user can set their own password. */
export type Users = {
  list(): User[]
  add(by: Principal, wanted: WantedUser): Promise<User>
  change(by: Principal, name: string, fields: { role?: Role; groups?: string[]; disabled?: boolean }): Promise<User>
  setPassword(by: Principal, name: string, wanted: { password: string; current?: string }): Promise<User>
  hasAdministrator(): boolean
  /** Adds the first administrator. Returns false if an administrator exists. */
  addFirst(wanted: { name: string; password: string }): Promise<boolean>
}

export type WantedUser = { name: string; role: Role; password: string; groups?: string[] }

type UsersParts = {
  readonly storage: Pick<Storage, 'users' | 'changes'>
  readonly directory: Directory
  readonly passwords: Passwords
  readonly clock: Clock
  readonly ids: Ids
}

export function createUsers({ storage, directory, passwords, clock, ids }: UsersParts): Users {
  async function toStored(wanted: WantedUser, by: Principal): Promise<StoredUser> {
    const { role, groups = [] } = wanted
    const name = parseUserName(wanted.name)
    const password = await passwords.hash(wanted.password)
    const made = { createdAt: clock.now(), createdBy: toPrincipalKey(by), revision: 1 }
    return { id: ids.next('user'), name, role, groups, password, ...made }
  }

  function getUser(name: string): StoredUser {
    const user = directory.findUser(name)
    if (user) return user
    throw new GatewayError('not-found', `No user is named ${name}`)
  }

  /** Names that differ only in case, such as `ada` and `Ada`, could be confused. */
  function demandFree(name: string): void {
    const same = directory.users().find((user) => user.name.toLowerCase() === name.toLowerCase())
    if (same) throw new GatewayError('name-taken', `A user named ${same.name} already exists`)
  }

  async function update(user: StoredUser, fields: UserFields, change: Change): Promise<User> {
    const outcome = await storage.users.change(user, fields, change)
    await storage.changes.announce('users')
    if (outcome === 'last-administrator')
      throw new GatewayError('last-administrator', `${user.name} is the only active administrator`)
    if (outcome === 'conflict')
      throw new GatewayError(
        'config-conflict',
        `The user ${user.name} was changed by another request at the same time; try again`,
      )
    return toUser(directory.findUser(user.name) ?? user)
  }

  return {
    list: () => directory.users().map(toUser),
    async add(by, wanted) {
      demandAdministrator(by)
      demandFree(wanted.name)
      const user = await toStored(wanted, by)
      const { name, role, groups } = user
      const change = toChange(name, by, { action: 'user-added', role, groups })
      const added = await storage.users.add(user, change)
      await storage.changes.announce('users')
      if (!added) throw new GatewayError('name-taken', `A user named ${name} already exists`)
      return toUser(getUser(name))
    },
    async change(by, name, { role, groups, disabled }) {
      demandAdministrator(by)
      const user = getUser(name)
      const disabledAt = disabled === undefined ? undefined : disabled ? (user.disabledAt ?? clock.now()) : null
      const change = toChange(name, by, { action: 'user-changed', role, groups, disabled })
      return update(user, { role, groups, disabledAt }, change)
    },
    async setPassword(by, name, { password, current }) {
      demandPerson(by)
      if (by.name !== name) demandAdministrator(by)
      const user = getUser(name)
      checkPassword(password)
      // Requires the current password, so that a person at an unattended browser cannot take over the account.
      if (by.name === name && !(await passwords.verify(current ?? '', user.password)))
        throw new GatewayError('sign-in-failed', 'The current password is wrong')
      const change = toChange(name, by, { action: 'password-set' })
      return update(user, { password: await passwords.hash(password) }, change)
    },
    hasAdministrator: () => directory.users().some(({ role, disabledAt }) => isActiveAdministrator(role, disabledAt)),
    async addFirst({ name, password }) {
      const user = await toStored({ name, password, role: 'administrator' }, adminToken)
      const body = { action: 'user-added', role: user.role, first: true }
      const added = await storage.users.addFirst(user, { principal: `user:${name}`, subject: `user:${name}`, body })
      await Promise.all([storage.changes.announce('users'), storage.changes.announce('tokens')])
      return added
    },
  }
}

function isActiveAdministrator(role: Role, disabledAt: number | undefined): boolean {
  return role === 'administrator' && disabledAt === undefined
}

export function demandAdministrator(by: Principal): void {
  demandPerson(by)
  if (administers(by)) return
  throw new GatewayError('forbidden', 'Only administrators can change users')
}

export function parseUserName(text: string): string {
  const name = UserName.safeParse(text)
  if (name.success) return name.data
  throw new GatewayError('request-invalid', `The name ${name.error.issues[0]?.message ?? 'is not valid'}`)
}

function toChange(name: string, by: Principal, body: Record<string, unknown>): Change {
  return { principal: toPrincipalKey(by), subject: `user:${name}`, body }
}

export function toUser({ id, name, role, groups, createdAt, signedInAt, disabledAt }: StoredUser): User {
  return {
    id,
    name,
    role,
    groups: [...groups],
    createdAt: toIso(createdAt),
    signedInAt: signedInAt === undefined ? undefined : toIso(signedInAt),
    disabledAt: disabledAt === undefined ? undefined : toIso(disabledAt),
  }
}

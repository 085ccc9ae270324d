import { onTestFinished } from 'vitest'
import { Config } from '../../src/contract/config.ts'
import { GatewayError } from '../../src/contract/errors.ts'
import type { Principal, Role } from '../../src/contract/principal.ts'
import { createIdentity, type Identity, type IdentityParts } from '../../src/identity/identity.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { createRemoval, type RemovalKind } from '../../src/removal/removal.ts'
import type { Storage } from '../../src/storage/storage.ts'
import { ids, open, type Place, temporaryFolder } from '../storage/support.ts'

export const start = Date.parse('2030-01-01T00:00:00Z')
/** Tests compare many passwords. */
export const cheap = { logN: 4, r: 1, p: 1 }
export const password = 'correct horse battery'

export type Opened = {
  readonly folder: string
  readonly time: { now: number }
  readonly storage: Storage
  readonly identity: Identity
  /** Signs in, as often as wanted. */
  signIn(name: string, given?: string): Promise<{ cookie: string; principal: Principal }>
  /** Adds a user and signs in. */
  person(name: string, role: Role): Promise<Principal>
  /** Removes a user or an agent with everything that identity keeps for it. */
  remove(by: Principal, kind: RemovalKind, name: string): Promise<unknown>
}

/** Who there is, with a clock that stands still until it is moved, and an administrator `ada` if wanted. */
export async function openIdentity(
  more: Partial<IdentityParts> & { place?: Place; first?: boolean } = {},
): Promise<Opened> {
  const { place = { folder: temporaryFolder() }, first = true, ...rest } = more
  const { folder } = place
  const time = { now: start }
  const clock = { ...systemClock, common: true as const, now: () => time.now }
  const storage = await open(place, { clock })
  const identity = await createIdentity({ storage, folder, clock, ids, passwordCost: cheap, ...rest })
  onTestFinished(() => identity.close())
  const code = first ? identity.setup.code() : undefined
  if (code !== undefined) await identity.setup.finish({ code, name: 'ada', password })
  const signIn = (name: string, given = password) =>
    identity.signIns.signIn({ name, password: given, address: '127.0.0.1' })
  return {
    folder,
    time,
    storage,
    identity,
    signIn,
    remove: createRemoval({ storage, config, identity, removers: [identity.remover] }).remove,
    async person(name, role) {
      const { principal: ada } = await signIn('ada')
      await identity.users.add(ada, { name, role, password })
      return (await signIn(name)).principal
    },
  }
}

/** Nobody here has settings. */
const config = { current: () => Config.parse({}), async change() {} }

export async function refusalOf(action: () => unknown): Promise<GatewayError> {
  try {
    await action()
  } catch (error) {
    if (error instanceof GatewayError) return error
    throw error
  }
  throw new Error('It was not refused')
}

/** The newest changes in the record, of one thing or of all. */
export async function changesOf(storage: Storage, subject?: string): Promise<Record<string, unknown>[]> {
  const { items } = await storage.audit.list({ limit: 100, kind: 'change', ...(subject !== undefined && { subject }) })
  return items.map(({ principal, body }) => ({ principal, ...body }))
}

import { GatewayError } from '../contract/errors.ts'
import { type Principal, toPrincipalKey } from '../contract/principal.ts'
import type { ScopeKey } from '../contract/scope.ts'
import type { SecretValue } from '../lib/secret.ts'
import type { SecretStore, StoredSecret } from '../storage/tables/secrets.ts'
import type { WantedSecret } from './secrets.ts'

/** A value that was found in a definition and needs a name. */
export type FoundValue = {
  readonly scope: ScopeKey
  /** The suggested name. A suffix is added if it is not free. */
  readonly name: string
  readonly value: string
  /** The only server that may use the secret. */
  readonly server: string
  /** The only host that it may be sent to; undefined if the server has no fixed host. */
  readonly host?: string | undefined
  /** Whether a text of the configuration already refers to this name, and would get the new value. */
  isReferred(name: string): boolean
}

export type KeptSecret = {
  readonly name: string
  /** Set if the secret is new; undefined if an equal secret of the same author is used. */
  readonly made?: StoredSecret
}

type KeepParts = {
  readonly store: Pick<SecretStore, 'find' | 'remove'>
  /** Undefined if another request added the secret at the same time. */
  add(principal: Principal, wanted: WantedSecret): Promise<StoredSecret | undefined>
  open(stored: StoredSecret): SecretValue | undefined
  isUsable(stored: StoredSecret): boolean
}

const mostValueCharacters = 65_536
const mostSuffix = 1000

/** The caller has checked that the principal may write the definition with the value to this scope. */
export async function keepValue(parts: KeepParts, by: Principal, found: FoundValue): Promise<KeptSecret> {
  const { scope, value, server, host } = found
  if (value.length > mostValueCharacters) {
    throw new GatewayError('request-invalid', `A secret of ${server} has more than ${mostValueCharacters} characters`)
  }
  const hosts = host === undefined ? [] : [host]
  for (let suffix = 1; suffix <= mostSuffix; suffix++) {
    const name = suffix === 1 ? found.name : `${found.name}_${suffix}`
    const stored = await parts.store.find(scope, name)
    if (stored && parts.isUsable(stored)) {
      if (isReusable(parts, stored, by, found)) return { name }
      continue
    }
    if (found.isReferred(name)) continue
    const made = await parts.add(by, { scope, name, value, hosts, servers: [server] })
    if (made) return { name, made }
  }
  throw new GatewayError('request-invalid', `No name is free for the secret ${found.name} of ${scope}`)
}

/**
 * Only a value that the same principal stored is compared. Otherwise the chosen name would tell a principal whether a
 * guessed value is the value of somebody else.
 */
function isReusable(
  { open }: KeepParts,
  stored: StoredSecret,
  by: Principal,
  { value, server, host }: FoundValue,
): boolean {
  if (stored.updatedBy !== toPrincipalKey(by)) return false
  if (stored.servers.length > 0 && !stored.servers.includes(server)) return false
  if (stored.hosts.length > 0 && (host === undefined || !stored.hosts.includes(host))) return false
  return open(stored)?.reveal() === value
}

/** Removes new secrets of a change that was refused, unless somebody has changed them since. */
export async function dropKept(
  store: Pick<SecretStore, 'find' | 'remove'>,
  by: Principal,
  made: readonly StoredSecret[],
): Promise<void> {
  for (const { id, scope, name, updatedAt } of made) {
    const stored = await store.find(scope, name)
    if (stored?.id !== id || stored.updatedAt !== updatedAt) continue
    const body = { action: 'secret-removed', scope, name, because: 'the change of the server was refused' }
    await store.remove(id, { principal: toPrincipalKey(by), subject: `secret:${name}`, body })
  }
}

import { type ConfigStore, type Environment, originOf } from '../config/config.ts'
import { GatewayError } from '../contract/errors.ts'
import { type Principal, toPrincipalKey } from '../contract/principal.ts'
import { type ScopeKey, toScope } from '../contract/scope.ts'
import { leastMasked, type SavedSecret, type Secret } from '../contract/secret.ts'
import type { ServerDefinition } from '../contract/server.ts'
import { type Clock, toIso } from '../lib/clock.ts'
import type { Ids } from '../lib/ids.ts'
import type { Log } from '../lib/log.ts'
import type { SecretValue } from '../lib/secret.ts'
import { createTurns } from '../lib/turns.ts'
import { findLiterals, type Masking, toPlaceKey } from '../masking/masking.ts'
import { rememberAuditKeys } from '../storage/audit-key.ts'
import { type KeyRing, loadKeys } from '../storage/key.ts'
import type { Remover } from '../storage/removal.ts'
import type { Storage } from '../storage/storage.ts'
import type { StoredSecret } from '../storage/tables/secrets.ts'
import { decrypt, encrypt } from './cipher.ts'
import { dropKept, type FoundValue, type KeptSecret, keepValue } from './keep.ts'
import { beginRotation, endRotation, identifyKeys, reencryptAll, type SecretKeys } from './keys.ts'
import { createSecretsRemover } from './remover.ts'
import { findBindingConflict, resolveTemplates, type Templated } from './resolve.ts'
import { mayChange, type Ownership, usableScopes } from './scopes.ts'

export { createLiteralMover, type MovedEntries, type MoveLiterals } from './move.ts'
export type { Templated } from './resolve.ts'
export { type Ownership, usableScopes } from './scopes.ts'

export type WantedSecret = {
  readonly scope: ScopeKey
  readonly name: string
  readonly value: string
  /** Unchanged if undefined. */
  readonly hosts?: readonly string[] | undefined
  readonly servers?: readonly string[] | undefined
  /** Throws `name-taken` instead of replacing an existing secret. */
  readonly onlyNew?: boolean | undefined
}

/** The use of a secret in the definition of a server. */
export type SecretUse = {
  readonly name: string
  readonly scope: ScopeKey
  readonly server: string
  readonly definition: ServerDefinition
}
/** `conflict`: why the secret may not be sent to the server. */
export type FoundSecret = { readonly scope: string; readonly conflict?: string | undefined }

export type Secrets = {
  readonly remover: Remover
  /** The secrets that this principal may see: names, scopes and bindings, never values. */
  list(principal: Principal): Secret[]
  set(principal: Principal, wanted: WantedSecret): Promise<SavedSecret>
  remove(principal: Principal, scope: ScopeKey, name: string): Promise<Secret>
  /** Stores a value of a definition under a free name. The caller has checked the rights: see `createLiteralMover`. */
  keep(principal: Principal, found: FoundValue): Promise<KeptSecret>
  /** Removes secrets that `keep` made for a change that was refused. */
  dropKept(principal: Principal, made: readonly StoredSecret[]): Promise<void>
  rotateKey(principal: Principal): Promise<{ keyVersion: number; secrets: number }>
  /**
   * The secret that `${NAME}` in a definition of this scope would use, without its value. The caller has checked that the
   * principal may write in the scope.
   */
  lookUp(wanted: SecretUse): FoundSecret | undefined
  /** The definition with its templates filled in, for the connection `id`. Throws `variable-missing`. */
  resolve(id: string, wanted: Templated): ServerDefinition
  close(): void
}

export type SecretsParts = {
  readonly storage: Pick<Storage, 'secrets' | 'changes' | 'audit'>
  readonly config: Pick<ConfigStore, 'resolve'>
  readonly masking: Pick<Masking, 'hide' | 'hideVariable'>
  readonly folder: string
  readonly environment: Environment
  readonly owners: Ownership
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  /** Called with the connections that use, or failed to find, a secret that was added, changed or removed. */
  onChange(connections: readonly string[]): void
}

type Known = { readonly stored: StoredSecret; readonly value: SecretValue | undefined }

const usedEvery = 60_000
/** The connection of a test of a definition. */
export const trialId = 'trial'

/** The encrypted secret store, and the only place where `${NAME}` becomes a value. Throws if the key is wrong. */
export async function createSecrets(parts: SecretsParts): Promise<Secrets> {
  const { storage, masking, clock, ids, log, owners } = parts
  const store = storage.secrets
  // Changes run one after the other, so that no value is encrypted with a key that a rotation is replacing.
  const inTurn = createTurns()
  let ring: KeyRing = await loadKeys(parts)
  let keys: SecretKeys = await identifyKeys(ring, store)
  for (const key of ring.keys) masking.hide(key.toString('base64'))
  await finishRotation() // continues an interrupted rotation
  let known = await load()
  /** The secrets that each connection asked for, including those that do not exist. */
  const asked = new Map<string, Set<string>>()
  const stop = storage.changes.on('secrets', refresh)

  return {
    remover: createSecretsRemover(storage),
    list,
    set,
    remove,
    keep,
    dropKept: drop,
    rotateKey,
    lookUp,
    resolve,
    close: stop,
  }

  async function load(): Promise<Map<string, Known>> {
    const rows = await store.all()
    if (rows.some(({ keyVersion }) => !keys.byVersion.has(keyVersion))) await rereadKeys()
    return new Map(rows.map((stored) => [toPlace(stored.scope, stored.name), { stored, value: open(stored) }]))
  }

  /** Another instance may have rotated the key. */
  async function rereadKeys(): Promise<void> {
    ring = await loadKeys(parts)
    keys = await identifyKeys(ring, store)
  }

  function open(stored: StoredSecret): SecretValue | undefined {
    const key = keys.byVersion.get(stored.keyVersion)
    const value = key && decrypt(key, stored, stored.ciphertext)
    if (!value) log.error({ scope: stored.scope, name: stored.name }, 'a secret cannot be decrypted and is not used')
    return value
  }

  async function refresh(): Promise<void> {
    const before = known
    known = await load()
    const changed = [...new Set([...before.keys(), ...known.keys()])].filter((place) => {
      const [old, now] = [before.get(place), known.get(place)]
      return old?.value?.reveal() !== now?.value?.reveal() || bindingOf(old) !== bindingOf(now)
    })
    const places = new Set(changed)
    parts.onChange([...asked].filter(([, wanted]) => [...wanted].some((place) => places.has(place))).map(([id]) => id))
  }

  function list(principal: Principal): Secret[] {
    const seesAll = principal.role === 'administrator' || principal.role === 'auditor'
    return [...known.values()]
      .filter(({ stored }) => isUsable(stored))
      .filter(({ stored }) => seesAll || mayChange(principal, toScope(asScope(stored.scope)), owners))
      .map(({ stored }) => toSecret(stored))
  }

  function set(principal: Principal, wanted: WantedSecret): Promise<SavedSecret> {
    assertMay(principal, wanted.scope)
    return inTurn(async () => {
      for (let attempt = 0; attempt < 3; attempt++) {
        const saved = await trySet(principal, wanted)
        if (!saved) continue // another request added or removed it at the same time
        await storage.changes.announce('secrets')
        return { ...toSecret(saved), ...(!saved.masked && { warning: tooShort }) }
      }
      throw new GatewayError(
        'internal',
        `The secret ${wanted.name} is being changed by other requests; nothing was saved. Try again`,
      )
    })
  }

  async function trySet(principal: Principal, wanted: WantedSecret, isNew = false): Promise<StoredSecret | undefined> {
    const { scope, name, value } = wanted
    const ownerId = toOwnerId(scope)
    const found = await store.find(scope, name)
    const before = found?.ownerId === ownerId ? found : undefined
    if (isNew && before) return undefined
    if (before && wanted.onlyNew) throw new GatewayError('name-taken', `A secret ${name} exists in ${scope}`, { name })
    const by = toPrincipalKey(principal)
    const now = clock.now()
    const place = { id: before?.id ?? ids.next('secret'), scope, name, keyVersion: keys.newest }
    const stored: StoredSecret = {
      createdAt: now,
      createdBy: by,
      ...before,
      ...place,
      ownerId,
      ciphertext: encrypt(newestKey(), place, value),
      hosts: wanted.hosts ?? before?.hosts ?? [],
      servers: wanted.servers ?? before?.servers ?? [],
      masked: value.length >= leastMasked,
      updatedAt: now,
      updatedBy: by,
    }
    const action = before ? 'secret-changed' : 'secret-added'
    const body = { action, scope, name, hosts: stored.hosts, servers: stored.servers }
    const change = { principal: by, subject: `secret:${name}`, body }
    const done = before ? await store.replace(stored, change) : await store.add(stored, change, found?.id)
    return done ? stored : undefined
  }

  function keep(principal: Principal, found: FoundValue): Promise<KeptSecret> {
    const add = (by: Principal, wanted: WantedSecret) => trySet(by, wanted, true)
    return inTurn(async () => {
      const kept = await keepValue({ store, add, open, isUsable }, principal, found)
      if (kept.made) await storage.changes.announce('secrets')
      return kept
    })
  }

  function drop(principal: Principal, made: readonly StoredSecret[]): Promise<void> {
    return inTurn(async () => {
      if (made.length === 0) return
      await dropKept(store, principal, made)
      await storage.changes.announce('secrets')
    })
  }

  function remove(principal: Principal, scope: ScopeKey, name: string): Promise<Secret> {
    assertMay(principal, scope)
    return inTurn(async () => {
      const found = await store.find(scope, name)
      const stored = found && isUsable(found) ? found : undefined
      const change = {
        principal: toPrincipalKey(principal),
        subject: `secret:${name}`,
        body: { action: 'secret-removed', scope, name },
      }
      if (!stored || !(await store.remove(stored.id, change))) {
        throw new GatewayError('secret-not-found', `There is no secret ${name} in ${scope}`)
      }
      await storage.changes.announce('secrets')
      return toSecret(stored)
    })
  }

  function rotateKey(principal: Principal): Promise<{ keyVersion: number; secrets: number }> {
    return inTurn(async () => {
      ring = await beginRotation(ring)
      for (const key of ring.keys) masking.hide(key.toString('base64'))
      keys = await identifyKeys(ring, store)
      const done = await finishRotation()
      const body = { action: 'key-rotated', keyVersion: keys.newest, secrets: done }
      await storage.audit.append({ principal: toPrincipalKey(principal), subject: 'secrets', body })
      await storage.changes.announce('secrets')
      return { keyVersion: keys.newest, secrets: done }
    })
  }

  async function finishRotation(): Promise<number> {
    const done = await reencryptAll({ store, keys })
    await rememberAuditKeys(parts, ring.keys.slice(1))
    ring = await endRotation(ring, store, keys)
    return done
  }

  function lookUp({ name, scope, server, definition }: SecretUse): FoundSecret | undefined {
    const found = usableScopes(scope, owners).map((place) => known.get(toPlace(place, name))?.stored)
    const stored = found.find((candidate) => candidate !== undefined && isUsable(candidate))
    return stored && { scope: stored.scope, conflict: findBindingConflict(definition, server, stored) }
  }

  function resolve(id: string, wanted: Templated): ServerDefinition {
    const places = new Set<string>()
    asked.set(id, places)
    hideLiterals(id, wanted)
    const { definition, used } = resolveTemplates(
      {
        config: parts.config,
        ownerOf: owners.ownerOf,
        trusts: owners.trusts,
        onVariable: masking.hideVariable,
        find(scope, name) {
          places.add(toPlace(scope, name))
          const found = known.get(toPlace(scope, name))
          return found?.value && isUsable(found.stored) ? { ...found.stored, value: found.value } : undefined
        },
      },
      wanted,
    )
    for (const secret of used) {
      hide(secret.value.reveal())
      markUsed(secret.id)
    }
    return definition
  }

  /** The number of masked values is limited, so members cannot add values by testing definitions that they do not save. */
  function hideLiterals(id: string, { name, definition, origins }: Templated): void {
    for (const { secret, place } of findLiterals(name, definition)) {
      const origin = originOf(origins, toPlaceKey(place))
      if (id !== trialId || (origin !== undefined && owners.trusts(origin))) hide(secret)
    }
  }

  /** A part of a URL is stored with its escapes, and may appear without them. */
  function hide(value: string): void {
    masking.hide(value)
    if (/%[0-9A-Fa-f]{2}/.test(value)) masking.hide(unescapeUrl(value))
  }

  function markUsed(id: string): void {
    const now = clock.now()
    for (const [place, { stored, value }] of known) {
      if (stored.id !== id || now - (stored.lastUsedAt ?? 0) < usedEvery) continue
      known.set(place, { stored: { ...stored, lastUsedAt: now }, value })
      store.markUsed(id, now)
    }
  }

  /** The secret of a removed user is not usable, even if a new user has the same name. */
  function isUsable({ scope, ownerId }: Pick<StoredSecret, 'scope' | 'ownerId'>): boolean {
    const { kind, name } = toNamed(scope)
    return kind !== 'user' || owners.findUserId(name) === ownerId
  }

  function toOwnerId(scope: ScopeKey): string | undefined {
    const { kind, name } = toNamed(scope)
    if (kind !== 'user') return undefined
    const id = owners.findUserId(name)
    if (id === undefined) throw new GatewayError('request-invalid', `No user is named ${name}`)
    return id
  }

  function assertMay(principal: Principal, scope: ScopeKey): void {
    if (mayChange(principal, toScope(scope), owners)) return
    throw new GatewayError(
      'forbidden',
      `${principal.kind} ${principal.name} is not allowed to change secrets of ${scope}`,
    )
  }

  function newestKey(): Buffer {
    const key = keys.byVersion.get(keys.newest)
    if (key) return key
    throw new GatewayError('key-wrong', 'The newest encryption key is missing')
  }
}

function unescapeUrl(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

const tooShort = `Values shorter than ${leastMasked} characters are not masked in results, because they would match unrelated text`

function bindingOf(known: Known | undefined): string {
  return known ? JSON.stringify([known.stored.hosts, known.stored.servers]) : ''
}

/** Scopes and names contain no spaces: they are validated on input. */
function toPlace(scope: string, name: string): string {
  return `${name} ${scope}`
}

function toNamed(scope: string): { readonly kind: string; readonly name: string } {
  const { kind, name = '' } = { name: undefined, ...toScope(asScope(scope)) }
  return { kind, name }
}

function asScope(scope: string): ScopeKey {
  return scope as ScopeKey // stored from a parsed scope
}

function toSecret(stored: StoredSecret): Secret {
  const { id, name, scope, hosts, servers, masked, createdBy, updatedBy, lastUsedAt } = stored
  return {
    id,
    name,
    scope,
    hosts: [...hosts],
    servers: [...servers],
    masked,
    createdAt: toIso(stored.createdAt),
    createdBy,
    updatedAt: toIso(stored.updatedAt),
    updatedBy,
    ...(lastUsedAt !== undefined && { lastUsedAt: toIso(lastUsedAt) }),
  }
}

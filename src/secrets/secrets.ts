import type { ConfigStore, Environment } from '../config/config.ts'
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
import type { Masking } from '../masking/masking.ts'
import { rememberAuditKeys } from '../storage/audit-key.ts'
import { type KeyRing, loadKeys } from '../storage/key.ts'
import type { Remover } from '../storage/removal.ts'
import type { Storage } from '../storage/storage.ts'
import type { StoredSecret } from '../storage/tables/secrets.ts'
import { decrypt, encrypt } from './cipher.ts'
import { beginRotation, endRotation, recogniseKeys, recryptAll, type SecretKeys } from './keys.ts'
import { createSecretsRemover } from './remover.ts'
import { resolveTemplates, type Templated } from './resolve.ts'
import { mayKeep, type Ownership } from './scopes.ts'

export type { Templated } from './resolve.ts'
export type { Ownership } from './scopes.ts'

export type WantedSecret = {
  readonly scope: ScopeKey
  readonly name: string
  readonly value: string
  /** Left as they are if not stated. */
  readonly hosts?: readonly string[] | undefined
  readonly servers?: readonly string[] | undefined
}

export type Secrets = {
  readonly remover: Remover
  /** What this principal may know of: names, scopes, bindings, never a value. */
  list(principal: Principal): Secret[]
  set(principal: Principal, wanted: WantedSecret): Promise<SavedSecret>
  remove(principal: Principal, scope: ScopeKey, name: string): Promise<Secret>
  rotateKey(principal: Principal): Promise<{ keyVersion: number; secrets: number }>
  /** The definition with its templates filled in, for the connection `id`; throws `variable-missing`. */
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
  /** These connections asked for a secret that is another now, or there, or gone. */
  onChange(connections: readonly string[]): void
}

type Known = { readonly stored: StoredSecret; readonly value: SecretValue | undefined }

const usedEvery = 60_000

/** The encrypted store, and the one place where `${NAME}` becomes a value. A wrong key refuses the start. */
export async function createSecrets(parts: SecretsParts): Promise<Secrets> {
  const { storage, masking, clock, ids, log, owners } = parts
  const store = storage.secrets
  // One after the other, so that nothing is encrypted under a key that is on its way out.
  const inTurn = createTurns()
  let ring: KeyRing = await loadKeys(parts)
  let keys: SecretKeys = await recogniseKeys(ring, store)
  for (const key of ring.keys) masking.hide(key.toString('base64'))
  await finishRotation() // one that was interrupted goes on
  let known = await load()
  /** Which connections have asked for what, found or not. */
  const asked = new Map<string, Set<string>>()
  const stop = storage.changes.on('secrets', refresh)

  return { remover: createSecretsRemover(storage), list, set, remove, rotateKey, resolve, close: stop }

  async function load(): Promise<Map<string, Known>> {
    const rows = await store.all()
    if (rows.some(({ keyVersion }) => !keys.byVersion.has(keyVersion))) await rereadKeys()
    return new Map(rows.map((stored) => [toPlace(stored.scope, stored.name), { stored, value: open(stored) }]))
  }

  /** Another instance may have turned to a new key. */
  async function rereadKeys(): Promise<void> {
    ring = await loadKeys(parts)
    keys = await recogniseKeys(ring, store)
  }

  function open(stored: StoredSecret): SecretValue | undefined {
    const key = keys.byVersion.get(stored.keyVersion)
    const value = key && decrypt(key, stored, stored.ciphertext)
    if (!value) log.error({ scope: stored.scope, name: stored.name }, 'a secret does not open: it is not used')
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
      .filter(({ stored }) => seesAll || mayKeep(principal, toScope(asScope(stored.scope)), owners))
      .map(({ stored }) => toSecret(stored))
  }

  function set(principal: Principal, wanted: WantedSecret): Promise<SavedSecret> {
    assertMay(principal, wanted.scope)
    return inTurn(async () => {
      for (let attempt = 0; attempt < 3; attempt++) {
        const saved = await trySet(principal, wanted)
        if (!saved) continue // somebody made or removed it in the same moment
        await storage.changes.announce('secrets')
        return { ...toSecret(saved), ...(!saved.masked && { warning: tooShort }) }
      }
      throw new GatewayError('internal', `The secret ${wanted.name} keeps changing; nothing was saved`)
    })
  }

  async function trySet(principal: Principal, wanted: WantedSecret): Promise<StoredSecret | undefined> {
    const { scope, name, value } = wanted
    const ownerId = toOwnerId(scope)
    const found = await store.find(scope, name)
    const before = found?.ownerId === ownerId ? found : undefined
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
      keys = await recogniseKeys(ring, store)
      const done = await finishRotation()
      const body = { action: 'key-rotated', keyVersion: keys.newest, secrets: done }
      await storage.audit.append({ principal: toPrincipalKey(principal), subject: 'secrets', body })
      await storage.changes.announce('secrets')
      return { keyVersion: keys.newest, secrets: done }
    })
  }

  async function finishRotation(): Promise<number> {
    const done = await recryptAll({ store, keys })
    await rememberAuditKeys(parts, ring.keys.slice(1))
    ring = await endRotation(ring, store, keys)
    return done
  }

  function resolve(id: string, wanted: Templated): ServerDefinition {
    const places = new Set<string>()
    asked.set(id, places)
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
      masking.hide(secret.value.reveal())
      markUsed(secret.id)
    }
    return definition
  }

  function markUsed(id: string): void {
    const now = clock.now()
    for (const [place, { stored, value }] of known) {
      if (stored.id !== id || now - (stored.lastUsedAt ?? 0) < usedEvery) continue
      known.set(place, { stored: { ...stored, lastUsedAt: now }, value })
      store.markUsed(id, now)
    }
  }

  /** A secret of a user who was removed is nobody's, also when somebody else has the name by now. */
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
    if (mayKeep(principal, toScope(scope), owners)) return
    throw new GatewayError('forbidden', `${principal.kind} ${principal.name} may not change secrets of ${scope}`)
  }

  function newestKey(): Buffer {
    const key = keys.byVersion.get(keys.newest)
    if (key) return key
    throw new GatewayError('key-wrong', 'The newest key is not at hand')
  }
}

const tooShort = `A value shorter than ${leastMasked} characters is used, but not hidden where it turns up: it would hide too much else`

function bindingOf(known: Known | undefined): string {
  return known ? JSON.stringify([known.stored.hosts, known.stored.servers]) : ''
}

/** Neither part holds a blank: scopes and names are checked where they come in. */
function toPlace(scope: string, name: string): string {
  return `${name} ${scope}`
}

function toNamed(scope: string): { readonly kind: string; readonly name: string } {
  const { kind, name = '' } = { name: undefined, ...toScope(asScope(scope)) }
  return { kind, name }
}

function asScope(scope: string): ScopeKey {
  return scope as ScopeKey // written by us, from a scope that was parsed
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

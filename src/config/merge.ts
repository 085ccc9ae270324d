import { createHash } from 'node:crypto'
import type { ScopedServer } from '../contract/config.ts'
import type { ScopeKey } from '../contract/scope.ts'
import { ServerDefinition } from '../contract/server.ts'
import { isPlainObject, own, type PlainObject, toKey } from '../documents/values.ts'
import { toCanonicalText } from '../lib/canonical.ts'
import { listTemplates } from './templates.ts'
import { withoutLoosening } from './tighten.ts'

/** Where each field came from, by dotted key: the last scope that stated it. */
export type Origins = Readonly<Record<string, ScopeKey>>

export type EffectiveServer = {
  readonly name: string
  /** The last scope that states anything of it. */
  readonly scope: ScopeKey
  /** Which connection carries it; scopes that leave the link alone share one. */
  readonly connection: string
  readonly definition: ServerDefinition
  readonly origins: Origins
  /** Changes exactly when the link has to be made anew. */
  readonly fingerprint: string
  /** The entries that this one refines, the first one first, and the entry whose connection it uses as the last. */
  readonly lineage: readonly PinnedEntry[]
}

/** An entry with a connection of its own, and so with pins of its own. */
export type PinnedEntry = { readonly scope: ScopeKey; readonly pinning: ServerDefinition['pinning'] }

export type Merge =
  | { readonly ok: true; readonly server: EffectiveServer }
  | { readonly ok: false; readonly candidate: PlainObject; readonly replaces: boolean; readonly issues: Issues }

type Issues = NonNullable<ReturnType<typeof ServerDefinition.safeParse>['error']>['issues']

export type MergeParts = {
  readonly earlier: EffectiveServer | undefined
  readonly name: string
  readonly statement: ScopedServer
  readonly scope: ScopeKey
  /** Whether a scope is one that only administrators write. */
  trusts(scope: ScopeKey): boolean
}

/** One statement on top of what earlier scopes made of the server. */
export function mergeServer({ earlier, name, statement: written, scope, trusts }: MergeParts): Merge {
  // Another address or program is another server: handing it the headers and env of the first would leak them.
  const base = earlier !== undefined && !changesIdentity(earlier.definition, written) ? earlier : undefined
  const statement = base === undefined ? written : withoutLoosening(written, base.definition, trusts(scope))
  const candidate = base === undefined ? statement : mergeFields(base.definition, statement, [])
  const parsed = ServerDefinition.safeParse(candidate)
  if (!parsed.success) {
    return { ok: false, candidate, replaces: earlier !== undefined && base === undefined, issues: parsed.error.issues }
  }
  const definition = withTrust(parsed.data, trusts(scope))
  const origins =
    base === undefined ? originsOf(definition, scope) : mergeOrigins(base.origins, definition, statement, scope)
  const print = fingerprint(definition, origins, trusts)
  const entry = { scope, pinning: base === undefined ? definition.pinning : statement.pinning }
  const link =
    base?.fingerprint === print && !tightensPinning(statement, base)
      ? { connection: base.connection, lineage: base.lineage }
      : { connection: toConnection(name, scope, earlier), lineage: [...(base?.lineage ?? []), entry] }
  return { ok: true, server: { name, scope, ...link, definition, origins, fingerprint: print } }
}

/** A scope that is stricter than what it inherits has pins of its own, and these belong to a connection. */
function tightensPinning(statement: ScopedServer, base: EffectiveServer): boolean {
  return statement.pinning === 'strict' && base.definition.pinning !== 'strict'
}

/** Whether a statement makes a whole server on top of what is inherited. */
export function isComplete(statement: ScopedServer, inherited: ServerDefinition | undefined): boolean {
  const alone = inherited === undefined || changesIdentity(inherited, statement)
  return ServerDefinition.safeParse(alone ? statement : mergeFields(inherited, statement, [])).success
}

/** Hints are believed where only an administrator can have written the entry, unless it says otherwise. */
export function withTrust(definition: ServerDefinition, trusted: boolean): ServerDefinition {
  return { ...definition, trust: definition.trust ?? (trusted ? 'annotations' : 'none') }
}

/**
 * One id for each chain: the same entry refines the earlier one in one chain and replaces it in another, and the two must
 * not share a link with its headers.
 */
function toConnection(name: string, scope: ScopeKey, earlier: EffectiveServer | undefined): string {
  return scope === 'global' ? name : `${earlier?.connection ?? name}@${scope}`
}

const identity = ['transport', 'url', 'command']

/** Whether a statement leads to another server than the one that it refines. */
export function changesIdentity(earlier: PlainObject, statement: PlainObject): boolean {
  if (identity.some((key) => statement[key] !== undefined && statement[key] !== earlier[key])) return true
  // Behind one address several hosts may answer: their name in the header is as good as another address.
  const host = hostHeader(statement)
  return host !== undefined && host !== hostHeader(earlier)
}

function hostHeader({ headers }: PlainObject): unknown {
  if (!isPlainObject(headers)) return undefined
  return Object.entries(headers).find(([name]) => name.toLowerCase() === 'host')?.[1]
}

/** Maps merge key by key, everything else is replaced. Names of headers are the same in any case of letters. */
export function mergeFields(earlier: PlainObject, later: PlainObject, path: readonly string[]): PlainObject {
  const overridden = path[0] === 'headers' ? new Set(Object.keys(later).map((name) => name.toLowerCase())) : undefined
  const kept = Object.entries(earlier).filter(([key]) => !overridden?.has(key.toLowerCase()))
  const merged = new Map<string, unknown>(kept)
  for (const [key, value] of Object.entries(later)) {
    if (value === undefined) continue
    const before = merged.get(key)
    const bothMaps = isPlainObject(before) && isPlainObject(value)
    merged.set(key, bothMaps ? mergeFields(before, value, [...path, key]) : value)
  }
  return Object.fromEntries(merged)
}

export function originsOf(definition: PlainObject, scope: ScopeKey): Origins {
  return Object.fromEntries(listKeys(definition).map((key) => [key, scope]))
}

function mergeOrigins(earlier: Origins, definition: PlainObject, statement: PlainObject, scope: ScopeKey): Origins {
  const stated = new Set(listKeys(statement))
  return Object.fromEntries(
    listKeys(definition).map((key) => [key, stated.has(key) ? scope : (own(earlier, key) ?? scope)]),
  )
}

/** Every field by dotted key, maps and what is in them. */
function listKeys(fields: PlainObject, prefix = ''): string[] {
  return Object.entries(fields).flatMap(([name, value]) => {
    if (value === undefined) return []
    const key = `${prefix}${name}`
    return isPlainObject(value) ? [key, ...listKeys(value, `${key}.`)] : [key]
  })
}

/** Who wrote the text at a dotted key; lists such as `args` are written as a whole. */
export function originOf(origins: Origins, key: string): ScopeKey | undefined {
  return own(origins, key) ?? own(origins, key.split('.', 1)[0] ?? '')
}

const linkFields = ['transport', 'command', 'args', 'env', 'cwd', 'secretsInArguments', 'url', 'headers', 'timeout']

/**
 * Over what the link depends on, and nothing else: a new description must not cut running calls.
 * The same template means something else where another scope wrote it, and so does the same address.
 */
function fingerprint(definition: ServerDefinition, origins: Origins, trusts: (scope: ScopeKey) => boolean): string {
  const written = listTemplates(definition)
    .filter(([path, text]) => path[0] === 'url' || text.includes('${'))
    .map(([path, text]): [string, ScopeKey | undefined, boolean] => {
      const origin = originOf(origins, toKey(path))
      return [toKey(path), text.includes('${') ? origin : undefined, origin !== undefined && trusts(origin)]
    })
  const fields: PlainObject = definition
  return hash([Object.fromEntries(linkFields.map((key) => [key, fields[key]])), written.sort(byKey)])
}

function byKey([left]: readonly unknown[], [right]: readonly unknown[]): number {
  return String(left) < String(right) ? -1 : 1
}

export function hash(value: unknown): string {
  return createHash('sha256').update(toCanonicalText(value)).digest('hex').slice(0, 32)
}

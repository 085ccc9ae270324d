import { createHash } from 'node:crypto'
import type { ScopedServer } from '../contract/config.ts'
import type { ScopeKey } from '../contract/scope.ts'
import { ServerDefinition } from '../contract/server.ts'
import { isPlainObject, own, type PlainObject, toKey } from '../documents/values.ts'
import { toCanonicalText } from '../lib/canonical.ts'
import { listTemplates } from './templates.ts'
import { withoutLoosening } from './tighten.ts'

/** The origin of each field by dotted key: the last scope that set it. */
export type Origins = Readonly<Record<string, ScopeKey>>

export type EffectiveServer = {
  readonly name: string
  /** The last scope that has an entry for the server. */
  readonly scope: ScopeKey
  /** The id of its connection. Scopes that do not change the connection settings share one. */
  readonly connection: string
  readonly definition: ServerDefinition
  readonly origins: Origins
  /** Changes exactly when a new connection is needed. */
  readonly fingerprint: string
  /** The entries that this entry refines, in order. The last is the entry whose connection it uses. */
  readonly lineage: readonly PinnedEntry[]
}

/** An entry with a separate connection, and therefore with separate pins. */
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
  /** Whether only administrators can change the scope. */
  trusts(scope: ScopeKey): boolean
}

/** Applies the entry of one scope to the server that earlier scopes define. */
export function mergeServer({ earlier, name, statement: written, scope, trusts }: MergeParts): Merge {
  // Another address or program is another server: it must not get the headers and env of the earlier one.
  const refines = earlier !== undefined && !changesIdentity(earlier.definition, written)
  const base = refines && !standsAlone({ earlier, statement: written, scope, trusts }) ? earlier : undefined
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

/**
 * A complete entry of administrators takes nothing from an entry that others wrote: they could add headers to it, or
 * rename tools that rules of administrators name.
 */
function standsAlone({
  earlier,
  statement,
  scope,
  trusts,
}: Omit<MergeParts, 'name' | 'earlier'> & { readonly earlier: EffectiveServer }) {
  const [root] = earlier.lineage
  return trusts(scope) && root !== undefined && !trusts(root.scope) && ServerDefinition.safeParse(statement).success
}

/** Stricter pinning than the inherited one needs separate pins, and therefore a separate connection. */
function tightensPinning(statement: ScopedServer, base: EffectiveServer): boolean {
  return statement.pinning === 'strict' && base.definition.pinning !== 'strict'
}

/** Whether an entry and the inherited definition together are a complete server. */
export function isComplete(statement: ScopedServer, inherited: ServerDefinition | undefined): boolean {
  const alone = inherited === undefined || changesIdentity(inherited, statement)
  return ServerDefinition.safeParse(alone ? statement : mergeFields(inherited, statement, [])).success
}

/** Sets the default of `trust`: annotations are trusted only if the entry is in a scope of administrators. */
export function withTrust(definition: ServerDefinition, trusted: boolean): ServerDefinition {
  return { ...definition, trust: definition.trust ?? (trusted ? 'annotations' : 'none') }
}

/**
 * The id contains the whole chain. The same entry may refine an earlier entry in one chain and replace it in another,
 * and these two must not share a connection with its headers.
 */
function toConnection(name: string, scope: ScopeKey, earlier: EffectiveServer | undefined): string {
  return scope === 'global' ? name : `${earlier?.connection ?? name}@${scope}`
}

const identity = ['transport', 'url', 'command']

/** Whether an entry points to another server than the entry that it refines. */
export function changesIdentity(earlier: PlainObject, statement: PlainObject): boolean {
  if (identity.some((key) => statement[key] !== undefined && statement[key] !== earlier[key])) return true
  // One address may serve several hosts, so another Host header also means another server.
  const host = hostHeader(statement)
  return host !== undefined && host !== hostHeader(earlier)
}

function hostHeader({ headers }: PlainObject): unknown {
  if (!isPlainObject(headers)) return undefined
  return Object.entries(headers).find(([name]) => name.toLowerCase() === 'host')?.[1]
}

/** Maps are merged key by key, other values are replaced. Header names are not case-sensitive. */
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

/** The dotted keys of all fields, with maps and their entries. */
function listKeys(fields: PlainObject, prefix = ''): string[] {
  return Object.entries(fields).flatMap(([name, value]) => {
    if (value === undefined) return []
    const key = `${prefix}${name}`
    return isPlainObject(value) ? [key, ...listKeys(value, `${key}.`)] : [key]
  })
}

/** The scope that set the text at a dotted key. A list such as `args` has one origin. */
export function originOf(origins: Origins, key: string): ScopeKey | undefined {
  return own(origins, key) ?? own(origins, key.split('.', 1)[0] ?? '')
}

const linkFields = ['transport', 'command', 'args', 'env', 'cwd', 'secretsInArguments', 'url', 'headers', 'timeout']

/**
 * Contains only the fields that the connection depends on: a new description must not end running calls. It also contains
 * the origins, because the same template or address has other rights if another scope wrote it.
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

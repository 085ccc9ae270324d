import type { StoredName } from '../storage/tables/tool-names.ts'
import { couldBeOf, toApartName, toEarlierName, toPlainName, toSuffixedName } from './naming.ts'

/** The space of the names of servers that only administrators can define. Every other space is one scope. */
export const sharedSpace = 'shared'

/** A tool or a prompt that needs a public name. */
export type NameKey = {
  readonly space: string
  readonly server: string
  /** The name that the server uses. */
  readonly tool: string
  /** The name that the operator gave it, otherwise the same. */
  readonly wanted: string
}

export type NameTable = {
  readonly rows: ReadonlyMap<string, StoredName>
  /** The names of each tool. It has several if the pattern or its override was changed. */
  readonly owned: ReadonlyMap<string, ReadonlySet<string>>
}

export type NameContext = {
  readonly pattern: string
  /** The names of all servers in the shared space. */
  readonly sharedServers: readonly string[]
}

/** Why names that have no row, or the row of another tool, cannot be assigned. */
export type NameClaims = {
  /** A rule of administrators that loosens, or a grant, contains exactly this name. */
  isNamedExactly(name: string): boolean
  /** A rule, grant or toolset has a pattern that matches the name. The pattern `*` does not count. */
  isNamed(name: string): boolean
  /** The tool of the row exists, or something refers to it. */
  isHeld(row: StoredName): boolean
}

export type NamePlan = { readonly added: readonly StoredName[]; readonly taken: readonly StoredName[] }

export function toNameTable(stored: readonly StoredName[]): NameTable {
  const owned = new Map<string, Set<string>>()
  for (const row of stored) {
    const names = owned.get(ownerOf(row)) ?? new Set()
    owned.set(ownerOf(row), names.add(row.name))
  }
  return { rows: new Map(stored.map((row) => [placeOf(row), row])), owned }
}

/** The public name of a tool; undefined if it has none yet. A tool that has a suffix keeps it. */
export function findName(table: NameTable, key: NameKey, context: NameContext): string | undefined {
  const names = table.owned.get(ownerOf(key))
  if (!names) return undefined
  const plain = toPlainName(context.pattern, toNamed(key))
  const isOpen = (name: string) => names.has(name) && !isShadowed(table, key, name, context)
  if (names.size === 1 && plain !== undefined && names.has(plain)) return isOpen(plain) ? plain : undefined
  const apart = toApart(key, context)
  if (names.has(apart) && !table.rows.has(placeOf({ space: sharedSpace, name: apart })) && key.space !== sharedSpace)
    return apart
  const others = [toSuffixedName(context.pattern, toNamed(key)), toSalted(key, context), toEarlier(key, context)]
  return [...others, ...listDefined(plain)].find(isOpen)
}

/**
 * The names for tools that have none. Servers of administrators come first, then tools that an operator renamed, then the
 * order of the alphabet, so that the order of a list does not decide. `keepEarlier`: these tools had names before names
 * were stored.
 */
export function planNames(
  table: NameTable,
  keys: readonly NameKey[],
  { context, claims, now, keepEarlier = false }: PlanParts,
): NamePlan {
  const added = new Map<string, StoredName>()
  const taken = new Map<string, StoredName>()
  const planned = keepEarlier
    ? keys.toSorted((a, b) => keptRank(a, context) - keptRank(b, context) || byRank(a, b))
    : keys.toSorted(byRank)
  for (const key of planned) {
    for (const name of listCandidates(key, { context, claims, keepEarlier })) {
      const blocking = findBlocking(key, name)
      if (blocking === 'held') continue
      for (const row of blocking) taken.set(placeOf(row), row)
      const row = { space: key.space, name, server: key.server, tool: key.tool, assignedAt: now }
      const known = table.rows.get(placeOf(row))
      if (known === undefined || ownerOf(known) !== ownerOf(key)) added.set(placeOf(row), row)
      break
    }
  }
  return { added: [...added.values()], taken: [...taken.values()] }

  /** The rows of other tools that must go first, or `held` if one of them must stay. */
  function findBlocking(key: NameKey, name: string): readonly StoredName[] | 'held' {
    const spaces = key.space === sharedSpace ? [sharedSpace] : [key.space, sharedSpace]
    const found: StoredName[] = []
    for (const space of spaces) {
      const place = placeOf({ space, name })
      const fresh = added.get(place)
      const row = fresh ?? (taken.has(place) ? undefined : table.rows.get(place))
      if (row === undefined || ownerOf(row) === ownerOf(key)) continue
      if (fresh || claims.isHeld(row)) return 'held'
      found.push(row)
    }
    return found
  }
}

type PlanParts = {
  readonly context: NameContext
  readonly claims: NameClaims
  readonly now: number
  readonly keepEarlier?: boolean
}

type CandidateParts = Pick<PlanParts, 'context' | 'claims'> & { readonly keepEarlier: boolean }

function listCandidates(key: NameKey, { context, claims, keepEarlier }: CandidateParts): string[] {
  const plain = toPlainName(context.pattern, toNamed(key))
  const earlier = toEarlier(key, context)
  const isKept = keepEarlier && (earlier === plain || (claims.isNamed(earlier) && !(plain && claims.isNamed(plain))))
  const kept = isKept && (key.space === sharedSpace || !isAmbiguous(key, earlier, context)) ? [earlier] : []
  const suffixed = [
    ...(key.space === sharedSpace ? [toSuffixedName(context.pattern, toNamed(key))] : []),
    toSalted(key, context),
  ]
  const wanted = [...listDefined(plain), ...suffixed]
  if (key.space === sharedSpace) {
    // Both servers are configured, and whichever is listed first would get what the rule allows.
    const isDoubtful = (name: string) => claims.isNamedExactly(name) && couldBeOfLonger(key, name, context)
    return [...kept, ...wanted.filter((name) => !isDoubtful(name))]
  }
  // A rule of administrators was not written for this server, and a name must not look like one of their servers.
  const own = wanted.filter((name) => !claims.isNamedExactly(name) && !isAmbiguous(key, name, context))
  return [...kept, ...own, toApart(key, context)]
}

/** A name of a member does not count any more if a server of administrators has it, or could have it. */
function isShadowed(table: NameTable, key: NameKey, name: string, context: NameContext): boolean {
  if (key.space === sharedSpace) return false
  return table.rows.has(placeOf({ space: sharedSpace, name })) || isAmbiguous(key, name, context)
}

/** Whether the name looks like a tool of another server, one that administrators defined: their rules would match it. */
function isAmbiguous({ server }: NameKey, name: string, { pattern, sharedServers }: NameContext): boolean {
  return sharedServers.some((other) => other !== server && couldBeOf(pattern, other, name))
}

function couldBeOfLonger({ server }: NameKey, name: string, { pattern, sharedServers }: NameContext): boolean {
  return sharedServers.some((other) => other.length > server.length && couldBeOf(pattern, other, name))
}

function keptRank(key: NameKey, { pattern }: NameContext): number {
  return toEarlierName(pattern, toNamed(key)) === toPlainName(pattern, toNamed(key)) ? 0 : 1
}

function byRank(a: NameKey, b: NameKey): number {
  const shared = Number(b.space === sharedSpace) - Number(a.space === sharedSpace)
  const renamed = Number(b.wanted !== b.tool) - Number(a.wanted !== a.tool)
  return shared || renamed || compare(a.server, b.server) || compare(a.tool, b.tool)
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

const toNamed = ({ server, wanted }: NameKey) => ({ server, tool: wanted })
const toSalt = ({ space, tool }: NameKey): string => `\n${space}\n${tool}`
const toSalted = (key: NameKey, { pattern }: NameContext) => toSuffixedName(pattern, toNamed(key), toSalt(key))
const toApart = (key: NameKey, { pattern }: NameContext) => toApartName(pattern, toNamed(key), toSalt(key))
const toEarlier = (key: NameKey, { pattern }: NameContext) => toEarlierName(pattern, toNamed(key))
const listDefined = (name: string | undefined) => (name === undefined ? [] : [name])

export function placeOf({ space, name }: Pick<StoredName, 'space' | 'name'>): string {
  return `${name} ${space}`
}

function ownerOf({ space, server, tool }: Pick<StoredName, 'space' | 'server' | 'tool'>): string {
  return `${space} ${server} ${tool}`
}

/** Whether tools have other names now: a name was taken away, or a server of administrators got a name of another space. */
export function losesNames(before: NameTable, after: NameTable): boolean {
  for (const [place, row] of before.rows) {
    const now = after.rows.get(place)
    if (now === undefined || ownerOf(now) !== ownerOf(row)) return true
    if (row.space === sharedSpace) continue
    const inShared = placeOf({ space: sharedSpace, name: row.name })
    if (after.rows.has(inShared) && !before.rows.has(inShared)) return true
  }
  return false
}

/** The names of one server without any other, for a definition that is tried and not saved. */
export function nameAlone(pattern: string, keys: readonly NameKey[]): (key: NameKey) => string | undefined {
  const context = { pattern, sharedServers: [] }
  const claims = { isNamed: () => false, isNamedExactly: () => false, isHeld: () => true }
  const table = toNameTable(planNames(toNameTable([]), keys, { context, claims, now: 0 }).added)
  return (key) => findName(table, key, context)
}

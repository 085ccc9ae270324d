import type { ConfigStore, PinnedEntry } from '../config/config.ts'
import { toGatewayError } from '../contract/errors.ts'
import { toScopeId, toScopeKey } from '../contract/scope.ts'
import type { ServerDefinition } from '../contract/server.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { createRounds } from '../lib/rounds.ts'
import { goneScopesOf, idsOf, type Remover } from '../storage/removal.ts'
import type { Storage } from '../storage/storage.ts'
import { readClaims } from './name-claims.ts'
import {
  findName,
  losesNames,
  type NameContext,
  type NameKey,
  type NamePlan,
  planNames,
  sharedSpace,
  toNameTable,
} from './name-table.ts'

/** The facts about a configured server that decide about the names of its tools. */
export type NamedServer = {
  readonly name: string
  /** The first entry is the one that defines the server. Later entries refine it. */
  readonly lineage: readonly PinnedEntry[]
}

/** A tool or a prompt. `wanted` is the name that the operator gave it, otherwise the same as `tool`. */
export type WantedName = { readonly server: NamedServer; readonly tool: string; readonly wanted: string }

/** The one place that assigns public names. All names are in memory: a lookup does not wait for the database. */
export type Names = {
  /** The public name; undefined until it is stored. */
  find(wanted: WantedName): string | undefined
  /** Stores names for those that have none. Resolves when they are in use, or cannot be stored now. */
  assign(wanted: readonly WantedName[]): Promise<void>
  /** The running assignment, if there is one. */
  pending(): Promise<void> | undefined
  close(): void
}

export type NamesParts = {
  readonly storage: Pick<Storage, 'toolNames' | 'grants' | 'pins' | 'changes'>
  readonly config: Pick<ConfigStore, 'current' | 'connections' | 'scopes' | 'statedIn' | 'trusts'>
  findUserId(name: string): string | undefined
  readonly clock: Clock
  readonly log: Log
  /** Names were lost, or were stored after an error. */
  onChange(): void
}

const retryAfter = 1000
const patience = 5000
/** Attempts in a row while other instances assign the same names. */
const mostAttempts = 8
/** A hostile server could invent new names all the time. */
const mostPerServer = 50_000
const mostRecorded = 100
/** Another instance may know a session that this one does not know yet. */
const sessionGrace = 3_600_000

type Context = NameContext & { readonly configured: ReadonlySet<string> }

export async function createNames(parts: NamesParts): Promise<Names> {
  const { storage, config, clock, log } = parts
  let table = toNameTable(await storage.toolNames.all())
  let known: { readonly of: unknown; readonly context: Context } | undefined
  const waiting = new Map<string, NameKey>()
  let running: Promise<void> | undefined
  let closed = false
  let cancelRetry = (): void => undefined
  const stopListening = storage.changes.on('names', load)
  const run = createRounds(assignOrRetry)
  await forgetSessions()
  if (table.rows.size === 0) await keepEarlierNames()
  return { find, assign, pending: () => running, close }

  function close(): void {
    closed = true
    cancelRetry()
    stopListening()
  }

  async function load(): Promise<void> {
    const before = table
    table = toNameTable(await storage.toolNames.all())
    if (losesNames(before, table)) parts.onChange()
  }

  /** Scopes of administrators share one space: there, the name of a server identifies it. */
  function spaceOf({ lineage }: NamedServer): string {
    const root = lineage[0]?.scope ?? 'global'
    return config.trusts(root) ? sharedSpace : toScopeId(root, parts.findUserId)
  }

  function toKey({ server, tool, wanted }: WantedName): NameKey {
    return { space: spaceOf(server), server: server.name, tool, wanted }
  }

  function contextNow(): Context {
    const specs = config.connections()
    const { naming: pattern } = config.current()
    if (known?.of === specs && known.context.pattern === pattern) return known.context
    const servers = specs.map((spec) => ({ space: spaceOf(spec), name: spec.name }))
    const inShared = servers.filter(({ space }) => space === sharedSpace).map(({ name }) => name)
    const configured = new Set(servers.map(({ space, name }) => `${space} ${name}`))
    known = { of: specs, context: { pattern, sharedServers: [...new Set(inShared)], configured } }
    return known.context
  }

  function find(wanted: WantedName): string | undefined {
    return findName(table, toKey(wanted), contextNow())
  }

  async function assign(wanted: readonly WantedName[]): Promise<void> {
    for (const each of wanted) {
      if (find(each) === undefined) waiting.set(JSON.stringify(toKey(each)), toKey(each))
    }
    if (waiting.size === 0) return
    const started = within(run())
    running = started
    await started
    if (running === started) running = undefined
  }

  /** Without the database a server is listed all the same: its tools are set aside until their names are stored. */
  function within(work: Promise<void>): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const cancel = clock.after(patience, resolve)
    void work.finally(() => {
      cancel()
      resolve()
    })
    return promise
  }

  async function assignOrRetry(): Promise<void> {
    try {
      await assignWaiting()
    } catch (error) {
      log.warn({ code: toGatewayError(error).code }, 'public names of tools could not be stored; trying again')
      cancelRetry()
      if (!closed) cancelRetry = clock.after(retryAfter, () => void retry())
    }
  }

  async function retry(): Promise<void> {
    const before = table
    await assign([])
    if (table !== before) parts.onChange()
  }

  /** Names that another instance stored meanwhile are not free any more, so the rest is planned again. */
  async function assignWaiting(keepEarlier = false): Promise<void> {
    for (let attempt = 0; attempt < mostAttempts; attempt++) {
      dropSettled()
      if (waiting.size === 0) return
      const plan = await makePlan([...waiting.values()], keepEarlier)
      if (plan.added.length + plan.taken.length === 0) return giveUp()
      const body = { change: 'names-taken-over', names: plan.taken.slice(0, mostRecorded) }
      await storage.toolNames.assign(plan.added, plan.taken, { principal: 'gateway', subject: 'names', body })
      // Every instance, this one included, reads the names before they are used.
      await storage.changes.announce('names')
    }
    throw new Error('Other instances assign the same names')
  }

  function dropSettled(): void {
    const context = contextNow()
    const counts = new Map<string, number>()
    for (const { space, server } of table.rows.values()) {
      counts.set(`${space} ${server}`, (counts.get(`${space} ${server}`) ?? 0) + 1)
    }
    for (const [text, key] of waiting) {
      const place = `${key.space} ${key.server}`
      const isOver = !context.configured.has(place) || (counts.get(place) ?? 0) >= mostPerServer
      if (isOver || findName(table, key, context) !== undefined) waiting.delete(text)
    }
  }

  async function makePlan(keys: readonly NameKey[], keepEarlier: boolean): Promise<NamePlan> {
    const context = contextNow()
    const where = { storage, config, configured: context.configured }
    const planWith = (claims: Awaited<ReturnType<typeof readClaims>>) =>
      planNames(table, keys, { context, claims, now: clock.now(), keepEarlier })
    const claims = await readClaims(where)
    const plan = planWith(claims)
    return claims.needsPins() ? planWith(await readClaims(where, true)) : plan
  }

  /** All candidates belong to other tools. That needs a collision of hashes, so the tool stays without a name. */
  function giveUp(): void {
    for (const { server, tool } of waiting.values()) log.error({ server, tool }, 'no public name is free for this tool')
    waiting.clear()
  }

  /** Tools that an earlier version knew, whose names were not stored. Pins are the record of them. */
  async function keepEarlierNames(): Promise<void> {
    const specs = new Map(config.connections().map((spec) => [`${spec.name} ${spec.scope}`, spec]))
    for (const pin of await storage.pins.all()) {
      const spec = pin.kind === 'tool' ? specs.get(`${pin.server} ${pin.scope}`) : undefined
      const key = spec && toKey({ server: spec, tool: pin.name, wanted: toWanted(spec.definition, pin.name) })
      if (key) waiting.set(JSON.stringify(key), key)
    }
    await assignWaiting(true)
  }

  async function forgetSessions(): Promise<void> {
    const open = new Set(config.scopes().map(toScopeKey).map(String))
    const old = [...table.rows.values()].filter(
      ({ space, assignedAt }) =>
        space.startsWith('session:') && !open.has(space) && assignedAt < clock.now() - sessionGrace,
    )
    if (old.length === 0) return
    await storage.toolNames.forget([...new Set(old.map(({ space }) => space))])
    table = toNameTable(await storage.toolNames.all())
  }
}

/** The name that the operator gave a tool, otherwise its own. */
export function toWanted({ tools }: Pick<ServerDefinition, 'tools'>, tool: string): string {
  return (Object.hasOwn(tools.override, tool) ? tools.override[tool]?.name : undefined) ?? tool
}

/** Removes the names of servers in the removed scopes. */
export function createNamesRemover(storage: Pick<Storage, 'toolNames'>): Remover {
  return {
    topics: ['names'],
    list: async () => [],
    remove: (subjects) => [
      storage.toolNames.removeAll([...goneScopesOf(subjects), ...idsOf(subjects, 'user').map((id) => `user:${id}`)]),
    ],
  }
}

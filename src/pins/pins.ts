import { GatewayError, toGatewayError } from '../contract/errors.ts'
import type { EventTable } from '../contract/events.ts'
import type { Pin, PinDecision, PinDetail, PinKind } from '../contract/pin.ts'
import type { Clock } from '../lib/clock.ts'
import type { Emitter } from '../lib/emitter.ts'
import type { Log } from '../lib/log.ts'
import { toVisible } from '../shared/visible.ts'
import type { Storage } from '../storage/storage.ts'
import type { Change } from '../storage/tables/audit.ts'
import type { StoredPin } from '../storage/tables/pins.ts'
import { judgeAlong, type PinLink, type PinVerdict } from './chain.ts'
import {
  baselineBy,
  compare,
  type LiveItem,
  reviewedDefinition,
  stateOf,
  toDetail,
  toDigest,
  toItemKey,
  toPin,
  toPinId,
  toWaiting,
} from './state.ts'

export type { PinLink } from './chain.ts'
export { applyPins, type Instructions, type PinnedOffering, toLiveItems, type Unpinned } from './pinned.ts'
export { createPinsRemover } from './remover.ts'
export { createPinService, type DecidedPin, type PinReview, type PinService } from './service.ts'

/** Identifies the server of a pin. Pins belong to the name and scope, so a new address keeps them. */
export type PinnedServer = { readonly connection: string; readonly name: string; readonly scope: string }

/** The pinned items of one server: all tools, and other items only if they are suspicious. */
export type LiveServer = PinnedServer & {
  /** The entries that it refines, in order. The last is its own entry. */
  readonly chain: readonly PinLink[]
  readonly items: ReadonlyMap<string, LiveItem>
}

export type Pins = {
  /** The combined result of the pins of a server and of the entries that it refines, for one item. */
  judge(server: LiveServer, kind: PinKind, name: string): PinVerdict
  /** Call when a server was listed. New items are accepted as the baseline; later differences are stored and reported. */
  observe(live: LiveServer): void
  /** Call when a connection offers nothing any more. `isGone`: it was removed, not only interrupted. */
  leave(connection: string, isGone: boolean): void
  list(): Pin[]
  get(id: string): PinDetail
  /** Accepts the current definitions, all or none. Throws `pin-changed` if one differs from the reviewed definition. */
  accept(decisions: readonly PinDecision[], by: PinAuthor): Promise<PinDetail[]>
  block(decision: PinDecision, by: PinAuthor): Promise<PinDetail>
  /** Removes the pins of a removed server, so that a new server of that name starts without pins. */
  forget(server: Omit<PinnedServer, 'connection'>, by: string): Promise<void>
  close(): void
}

/** The author of a decision on a pin. */
export type PinAuthor = { readonly key: string; readonly isAdministrator: boolean }

export type PinsParts = {
  readonly storage: Pick<Storage, 'pins' | 'changes'>
  readonly clock: Clock
  readonly log: Log
  readonly emit: Emitter<EventTable>['emit']
  /** The offering of these connections has changed. */
  onChange(connections: readonly string[]): void
}

/** Milliseconds between two writes of differences, so that a server that changes all the time causes few writes. */
const noteEvery = 2000
const retryAfter = 1000
const mostEvents = 100
const mostNamed = 100

type Kept = Map<string, StoredPin>

const toServerKey = ({ name, scope }: { name: string; scope: string }): string => `${name} ${scope}`

/** Keeps all pins in memory for the catalog, and stores them in the database. */
export async function createPins(parts: PinsParts): Promise<Pins> {
  const { storage, clock } = parts
  let kept = new Map<string, Kept>()
  const lives = new Map<string, LiveServer>()
  /** Servers whose baseline is not in the database yet. `load` must keep it. */
  const unstored = new Set<string>()
  /** Differences that are not in the database yet. `load` must keep them. */
  const notes = new Map<string, Kept>()
  let cancelNotes: (() => void) | undefined
  let writing = 0
  let storing: Promise<void> = Promise.resolve()
  let closed = false

  await load()
  const stopListening = storage.changes.on('pins', async () => {
    await load()
    parts.onChange([...lives.values()].map(({ connection }) => connection))
  })

  return { judge, observe, leave, list, get, accept, block, forget, close }

  async function load(): Promise<void> {
    const read = new Map<string, Kept>()
    for (const pin of await storage.pins.all()) keptIn(read, pin).set(toItemKey(pin.kind, pin.name), pin)
    for (const key of unstored) {
      const own = kept.get(key)
      if (own) read.set(key, new Map([...own, ...(read.get(key) ?? [])]))
    }
    for (const pin of [...notes.values()].flatMap((noted) => [...noted.values()])) {
      const own = keptIn(read, pin)
      const itemKey = toItemKey(pin.kind, pin.name)
      own.set(itemKey, { ...(own.get(itemKey) ?? pin), seen: pin.seen })
    }
    kept = read
  }

  function judge({ chain, items }: LiveServer, kind: PinKind, name: string): PinVerdict {
    const itemKey = toItemKey(kind, name)
    return judgeAlong(chain, (link) => kept.get(toServerKey(link))?.get(itemKey), items.get(itemKey))
  }

  function observe(live: LiveServer): void {
    const key = toServerKey(live)
    const own = kept.get(key) ?? new Map<string, StoredPin>()
    const before = lives.get(key)?.items ?? own
    lives.set(key, live)
    const isReplaced = [...before].some(([itemKey, { kind }]) => kind === 'tool' && !live.items.has(itemKey))
    // If a tool disappeared, a new tool may be the same one with another name. A person must accept it.
    if (!live.chain.at(-1)?.strict && !isReplaced) addFirstSeen(live, own)
    for (const link of live.chain) noteDifferences(live, link)
    if (notes.size > 0) writeNotes()
  }

  function addFirstSeen(live: LiveServer, own: Kept): void {
    const fresh = [...live.items].filter(([itemKey, { kind }]) => kind === 'tool' && !own.has(itemKey))
    if (fresh.length === 0) return
    const isFirst = ![...own.values()].some(({ kind }) => kind === 'tool')
    const items = fresh.map(([, item]) => item)
    addBaseline(live, items, isFirst ? 'baseline' : 'tools-added')
  }

  function leave(connection: string, isGone: boolean): void {
    for (const [key, live] of lives) {
      if (live.connection !== connection) continue
      lives.delete(key)
      // A session does not exist any more after its end, so its pins are removed.
      if (isGone && live.scope.startsWith('session:')) store(() => forget(live, 'gateway'))
    }
  }

  /** Trust on first use. Suspicious tools still wait for a person. */
  function addBaseline(live: LiveServer, tools: readonly LiveItem[], change: 'baseline' | 'tools-added'): void {
    const at = clock.now()
    const pins = tools.map((item): StoredPin => {
      const key = { server: live.name, scope: live.scope, kind: item.kind, name: item.name }
      if (item.reason !== undefined) return toWaiting(key, { hash: item.hash, text: item.text(), at })
      const accepted = { hash: item.hash, text: item.text() }
      return {
        ...key,
        state: 'accepted',
        accepted,
        baseline: true,
        decidedBy: baselineBy,
        byAdministrator: false,
        decidedAt: at,
        seen: undefined,
      }
    })
    for (const pin of pins) keptIn(kept, pin).set(toItemKey(pin.kind, pin.name), pin)
    unstored.add(toServerKey(live))
    const accepted = pins.filter(({ state }) => state === 'accepted')
    const waiting = pins.filter(({ state }) => state === 'waiting').map(({ name }) => name)
    const body = {
      change,
      scope: live.scope,
      tools: accepted.length,
      digest: toDigest(accepted),
      ...(waiting.length > 0 && { suspicious: waiting.slice(0, mostNamed) }),
    }
    store(async () => {
      await storage.pins.addBaseline(pins, { principal: 'gateway', subject: `pins:${live.name}`, body })
      unstored.delete(toServerKey(live))
      await storage.changes.announce('pins')
    })
  }

  /** Stores the items that differ from the pins of one entry, because a person can only accept a stored item. */
  function noteDifferences(live: LiveServer, link: PinLink): void {
    const key = toServerKey(link)
    const at = clock.now()
    const noted: Kept = new Map()
    let emitted = 0
    for (const [itemKey, item] of live.items) {
      const pin = kept.get(key)?.get(itemKey)
      const state = stateOf(pin, item)
      if (link.scope !== live.scope && !isForInherited(link, pin)) continue
      const isKnown = pin?.seen?.hash === item.hash || (state === 'blocked' && pin?.accepted?.hash === item.hash)
      if (state === 'accepted' || isKnown) continue
      const seen = { hash: item.hash, text: item.text(), at }
      const own = { server: link.name, scope: link.scope, kind: item.kind, name: item.name }
      const next = pin ? { ...pin, seen } : toWaiting(own, seen)
      keptIn(kept, own).set(itemKey, next)
      noted.set(itemKey, next)
      if (item.kind === 'tool' && state === 'changed' && emitted++ < mostEvents) {
        parts.emit('tool-drifted', { pin: toPin(next, item, true) })
      }
    }
    if (noted.size === 0) return
    notes.set(key, new Map([...(notes.get(key) ?? []), ...noted]))
  }

  /** A refinement reports for an inherited entry if that entry is not connected, or is strict and has no pin for the item. */
  function isForInherited(link: PinLink, pin: StoredPin | undefined): boolean {
    return pin === undefined ? link.strict : !lives.has(toServerKey(link))
  }

  /** Writes all differences, at most once per `noteEvery` and only after the previous write. */
  function writeNotes(): void {
    if (cancelNotes || writing > 0) return
    cancelNotes = clock.after(noteEvery, () => {
      cancelNotes = undefined
      if (notes.size > 0) writeNotes()
    })
    for (const [key, noted] of notes) {
      writing++
      store(async () => {
        await storage.pins.note([...noted.values()], toNoteEntry(key, [...noted.values()]))
        writing--
        forgetNotes(key, noted)
      })
    }
  }

  /** Keeps notes that changed during the write. */
  function forgetNotes(key: string, written: Kept): void {
    const left = [...(notes.get(key) ?? [])].filter(([itemKey, pin]) => written.get(itemKey) !== pin)
    if (left.length > 0) notes.set(key, new Map(left))
    else notes.delete(key)
  }

  /** Runs storage tasks one after the other and retries them after an error. Memory already has the new state. */
  function store(task: () => Promise<void>): void {
    storing = storing.then(task).catch((error: unknown) => {
      if (closed) return
      parts.log.warn({ code: toGatewayError(error).code }, 'pins could not be stored; trying again')
      clock.after(retryAfter, () => store(task))
    })
  }

  function list(): Pin[] {
    const found: Pin[] = []
    for (const [key, own] of kept) {
      const items = lives.get(key)?.items
      for (const [itemKey, pin] of own) {
        found.push(withInherited(toPin(pin, items?.get(itemKey), items?.has(itemKey) ?? false), pin))
      }
    }
    return found.sort((a, b) => compare(a.server, b.server) || compare(a.scope, b.scope) || compare(a.name, b.name))
  }

  function get(id: string): PinDetail {
    const pin = byId()(id)
    return withInherited(toDetail(pin, liveOf(pin)), pin)
  }

  /** Adds the pin of an inherited entry if that pin decides. */
  function withInherited<Some extends Pin>(shown: Some, { server, scope, kind, name }: StoredPin): Some {
    const live = lives.get(toServerKey({ name: server, scope }))
    if (!live || live.chain.length < 2) return shown
    const verdict = judge(live, kind, name)
    const isOwn = verdict.scope === scope || (verdict.state === 'accepted' && shown.state === 'accepted')
    return isOwn ? shown : { ...shown, inherited: { scope: verdict.scope, state: verdict.state } }
  }

  /** A lookup by id. It computes all ids once, for callers that look up many pins. */
  function byId(): (id: string) => StoredPin {
    const known = new Map<string, StoredPin>()
    for (const own of kept.values()) for (const pin of own.values()) known.set(toPinId(pin), pin)
    return (id) => {
      const pin = known.get(id)
      if (pin) return pin
      throw new GatewayError('pin-not-found', `No pin has the id ${toVisible(id.slice(0, 64))}`)
    }
  }

  function liveOf({ server, scope, kind, name }: StoredPin): LiveItem | undefined {
    return lives.get(toServerKey({ name: server, scope }))?.items.get(toItemKey(kind, name))
  }

  async function accept(decisions: readonly PinDecision[], by: PinAuthor): Promise<PinDetail[]> {
    const at = clock.now()
    const locate = byId()
    const taken = decisions.map((decision) => {
      const pin = locate(decision.id)
      const { hash, text } = reviewedDefinition(pin, liveOf(pin), decision)
      const next: StoredPin = {
        ...pin,
        state: 'accepted',
        accepted: { hash, text },
        baseline: false,
        decidedBy: by.key,
        byAdministrator: by.isAdministrator,
        decidedAt: at,
        seen: undefined,
      }
      return { before: pin, next }
    })
    await decide(taken, 'accepted', by.key)
    return taken.map(({ next }) => withInherited(toDetail(next, liveOf(next)), next))
  }

  async function block(decision: PinDecision, by: PinAuthor): Promise<PinDetail> {
    const pin = byId()(decision.id)
    const { hash, text } = reviewedDefinition(pin, liveOf(pin), decision)
    const at = clock.now()
    const seen = hash === pin.accepted?.hash ? pin.seen : { hash, text, at }
    const decided = { decidedBy: by.key, byAdministrator: by.isAdministrator, decidedAt: at }
    const next: StoredPin = { ...pin, state: 'blocked', ...decided, seen }
    await decide([{ before: pin, next }], 'blocked', by.key)
    return get(decision.id)
  }

  type Taken = { readonly before: StoredPin; readonly next: StoredPin }

  async function decide(taken: readonly Taken[], change: 'accepted' | 'blocked', by: string): Promise<void> {
    const changes = [...Map.groupBy(taken, ({ next }) => `${next.server} ${next.scope}`).values()].map((group) => ({
      principal: by,
      subject: `pins:${group[0]?.next.server}`,
      body: {
        change: `definitions-${change}`,
        scope: group[0]?.next.scope,
        count: group.length,
        digest: toDigest(group.map(({ next }) => next)),
        items: group.slice(0, mostNamed).map(({ before, next }) => ({
          kind: next.kind,
          name: toVisible(next.name),
          ...(before.accepted && { from: before.accepted.hash }),
          to: next.accepted?.hash ?? next.seen?.hash,
        })),
      },
    }))
    await storage.pins.decide(
      taken.map(({ next }) => next),
      changes,
    )
    for (const { next } of taken) keptIn(kept, next).set(toItemKey(next.kind, next.name), next)
    const servers = new Set(taken.map(({ next }) => `${next.server} ${next.scope}`))
    const concerned = [...lives.values()].filter(({ chain }) => chain.some((link) => servers.has(toServerKey(link))))
    parts.onChange(concerned.map(({ connection }) => connection))
    await storage.changes.announce('pins')
  }

  async function forget(server: Omit<PinnedServer, 'connection'>, by: string): Promise<void> {
    const key = toServerKey(server)
    const own = kept.get(key)
    lives.delete(key)
    if (!own || own.size === 0) return
    await storage.pins.forget(server.name, server.scope, {
      principal: by,
      subject: `pins:${server.name}`,
      body: { change: 'definitions-forgotten', scope: server.scope, count: own.size },
    })
    kept.delete(key)
    unstored.delete(key)
    notes.delete(key)
    await storage.changes.announce('pins')
  }

  function close(): void {
    closed = true
    cancelNotes?.()
    stopListening()
  }
}

function keptIn(all: Map<string, Kept>, { server, scope }: { server: string; scope: string }): Kept {
  const key = toServerKey({ name: server, scope })
  const own = all.get(key) ?? new Map<string, StoredPin>()
  all.set(key, own)
  return own
}

function toNoteEntry(key: string, pins: readonly StoredPin[]): Change {
  const [name, scope] = splitKey(key)
  const items = pins.slice(0, mostNamed).map((pin) => ({
    kind: pin.kind,
    name: toVisible(pin.name),
    ...(pin.accepted && { accepted: pin.accepted.hash }),
    live: pin.seen?.hash,
  }))
  return {
    principal: 'gateway',
    subject: `pins:${name}`,
    body: { change: 'differs', scope, count: pins.length, items },
  }
}

/** Server names contain no space. */
function splitKey(key: string): [name: string, scope: string] {
  const space = key.indexOf(' ')
  return [key.slice(0, space), key.slice(space + 1)]
}

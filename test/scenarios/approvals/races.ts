import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import Sqlite from 'better-sqlite3'
import { expect, onTestFinished } from 'vitest'
import {
  type ApprovalService,
  createApprovalServices,
  createApprovalStore,
  createGrantCache,
  type GrantService,
} from '../../../src/approvals/approvals.ts'
import { type CallOutcome, createCalls } from '../../../src/calls/calls.ts'
import { createCatalog, createNames } from '../../../src/catalog/catalog.ts'
import { createConfig } from '../../../src/config/config.ts'
import type { Approval } from '../../../src/contract/approval.ts'
import { GatewayError } from '../../../src/contract/errors.ts'
import type { EventTable } from '../../../src/contract/events.ts'
import type { Grant } from '../../../src/contract/grant.ts'
import { toPrincipalId } from '../../../src/contract/principal.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { createEmitter, type Emitter } from '../../../src/lib/emitter.ts'
import { silentLog } from '../../../src/lib/log.ts'
import { createTurns } from '../../../src/lib/turns.ts'
import { createMasking } from '../../../src/masking/masking.ts'
import { createPins } from '../../../src/pins/pins.ts'
import { createServers } from '../../../src/servers/servers.ts'
import { openStorage, type Storage } from '../../../src/storage/storage.ts'
import type { Caller } from '../../../src/wire/caller.ts'
import { plainSeal } from '../../config/record.ts'
import type { RecordedCall } from '../../fixtures/fixtures.ts'
import { auditKey, ids, type Place, temporaryFolder } from '../../storage/support.ts'
import { poll, roomy } from '../../support/gateway.ts'
import { connectTo } from '../../support/postgres.ts'
import { codeOf, person, recordFromNowOn, toServer } from './stage.ts'

/** A gateway from its real parts, so that something can be put between them and the store. */
export type Road = {
  readonly approvals: ApprovalService
  readonly grants: GrantService
  /** One call that stays until it is answered, with what it waits for. */
  hold(n: number): { outcome: Promise<CallOutcome>; shown: Promise<Approval> }
  call(n: number): Promise<CallOutcome>
  readonly events: Emitter<EventTable>
}

/** Puts a store that is wrong in one way in the place of the right one; `sql` changes the database past it. */
export type Wrong = (storage: Storage, sql: (text: string, ...values: unknown[]) => Promise<void>) => Storage

const right: Wrong = (storage) => storage

export async function buildRoad(place: Place, wrong: Wrong = right, url?: string): Promise<Road> {
  const folder = place.databaseUrl === undefined ? join(place.folder, 'data') : temporaryFolder()
  await mkdir(folder, { recursive: true })
  const file = join(temporaryFolder(), 'sallyport.json')
  const limits = { pending: 20 }
  const server = url === undefined ? await toServer() : { transport: 'http' as const, url }
  await writeFile(file, JSON.stringify(roomy({ servers: { files: server }, limits })))

  const events = createEmitter<EventTable>(() => {})
  const { emit } = events
  const [log, clock, masking] = [silentLog, systemClock, createMasking()]
  const opened = await openStorage({ folder, databaseUrl: place.databaseUrl, clock, ids, log, auditKey })
  const record = opened.configChanges
  const config = await createConfig({ file, clock, log, environment: {}, emit, record, seal: plainSeal })
  const storage = wrong(opened, changerOf({ ...place, folder }))
  const servers = createServers({
    folder,
    instance: storage.instance,
    version: '0.0.0',
    clock,
    log,
    children: storage.children,
    memory: storage.memory,
    limits: () => config.current().limits,
    egressAllow: () => [],
    resolve: (_, { definition, origins }) => config.resolve(definition, origins),
    masking,
    onSecretFound() {},
    prepare: (id, lists) => catalog.prepare(id, lists),
    onChange() {},
    onTools: (id) => catalog.observe(id),
  })
  const pins = await createPins({ storage, clock, log, emit, onChange() {} })
  const names = await createNames({ storage, config, findUserId: () => undefined, clock, log, onChange() {} })
  const catalog = createCatalog({ config, servers, pins, names, onNamed() {} })
  const findUser = (name: string) => ({ id: `user-${name}`, name, role: 'administrator' as const, groups: [] })
  const grantCache = await createGrantCache({ storage, findUser, log })
  const approvalStore = createApprovalStore({ storage, expiry: () => 600_000, clock, ids, log, emit })
  const needs = { storage, catalog, config, approvalStore, grants: grantCache, servers, masking, clock, ids, emit }
  const calls = createCalls({ ...needs, idOf: toPrincipalId })
  const desk = createApprovalServices({
    storage,
    approvalStore,
    grantCache,
    identity: { idsOf: () => [], idOf: toPrincipalId },
    findUser,
    clock,
    ids,
    describePrincipal: () => principal,
    toolsOf: () => [],
  })
  servers.reconcile(config.connections())
  onTestFinished(async () => {
    await config.close()
    await calls.close(0)
    approvalStore.close()
    grantCache.close()
    await servers.close()
    pins.close()
    await opened.close()
  })
  await poll(() => servers.lists('files'))

  const request = (n: number) =>
    ({
      principal,
      surface: 'library',
      selector: { kind: 'all' },
      name: 'files_write_thing',
      arguments: { n },
    }) as const
  const { signal } = new AbortController()
  return {
    ...desk,
    events,
    call: (n) => calls.advance(request(n), { signal }),
    hold(n) {
      const shown = Promise.withResolvers<Approval>()
      const present: Caller['present'] = async (approval, { settled }) => {
        shown.resolve(approval)
        await settled
        return undefined
      }
      const outcome = calls.advance(request(n), { signal, present })
      outcome.catch(shown.reject)
      return { outcome, shown: shown.promise }
    },
  }
}

const principal = { kind: 'agent', name: 'tester' } as const

function changerOf({ folder, databaseUrl }: Place) {
  if (databaseUrl === undefined) {
    return async (text: string, ...values: unknown[]) => {
      const connection = new Sqlite(join(folder, 'sallyport.db'), { timeout: 10_000 })
      connection.prepare(text).run(...values)
      connection.close()
    }
  }
  const client = connectTo(databaseUrl)
  const inTurn = createTurns()
  onTestFinished(async () => (await client).end())
  return async (text: string, ...values: unknown[]) => {
    let place = 0
    const query = text.replaceAll('?', () => `$${++place}`)
    await inTurn(async () => (await client).query(query, values))
  }
}

/** How long the wrong variants below leave between looking and writing: enough for others to look as well. */
const windowMs = 20

/** Looks how much of a grant is used, claims, and writes one more afterwards. */
export const readsThenSpends: Wrong = (storage, sql) => ({
  ...storage,
  async claim({ permission, ...call }) {
    if (!permission || !('grant' in permission)) return storage.claim({ ...call, ...(permission && { permission }) })
    const grant = await storage.grants.find(permission.grant)
    if (!grant || grant.used >= grant.budget) throw new GatewayError('permission-spent', 'Used up')
    await delay(windowMs)
    const permit = await storage.claim(call)
    await sql('update grants set used = ? where id = ?', grant.used + 1, grant.id)
    return permit
  },
})

/** Looks whether an approval still waits, and writes the answer afterwards. */
export const readsThenAnswers: Wrong = (storage, sql) => ({
  ...storage,
  approvalChanges: {
    ...storage.approvalChanges,
    async answer({ id }, { answer, next }) {
      const approval = await storage.approvals.find(id)
      if (approval?.state !== 'waiting') return false
      await delay(windowMs)
      const answers = JSON.stringify([...approval.answers, answer])
      await sql('update approvals set state = ?, answers = ? where id = ?', next, answers, id)
      return true
    },
  },
})

/** Not wrong, but slow: everybody has read an answer before the instance that wrote it goes on. */
export const readsBeforeItReturns: Wrong = (storage) => ({
  ...storage,
  approvalChanges: {
    ...storage.approvalChanges,
    async answer(approval, said) {
      const isWritten = await storage.approvalChanges.answer(approval, said)
      await storage.changes.announce('approvals')
      return isWritten
    },
  },
})

/** Looks whether an approval is unused, and claims the call by itself. */
export const readsThenUses: Wrong = (storage, sql) => ({
  ...storage,
  async claim({ permission, ...call }) {
    if (!permission || !('approval' in permission)) return storage.claim({ ...call, ...(permission && { permission }) })
    const approval = await storage.approvals.find(permission.approval)
    if (approval?.state !== 'approved') throw new GatewayError('permission-spent', 'Used')
    await delay(windowMs)
    const { once: _key, ...unkeyed } = call
    const permit = await storage.claim({ ...unkeyed, id: ids.next('call') })
    await sql("update approvals set state = 'used' where id = ?", approval.id)
    return permit
  },
})

/** Takes every call that ended without an answer for one that was not sent. */
export const releasesWhatFailed: Wrong = (storage) => ({
  ...storage,
  finishOnce: (call, end, key) =>
    storage.finishOnce(call, end.error ? { ...end, unsent: true } : end, end.error ? { kind: 'released' } : key),
  approvalChanges: { ...storage.approvalChanges, async deliver() {} },
})

function numbersIn(lines: readonly RecordedCall[]): number[] {
  return lines.map(({ arguments: given }) => Number(given?.n))
}

/** Many people approve one approval at once; tells how many of them were heard and how often the call ran. */
export async function approveAtOnce(roads: readonly Road[], people: number, n: number) {
  const lines = await recordFromNowOn()
  const [first] = roads
  if (!first) throw new Error('Nobody is there')
  const caller = first.hold(n)
  const { id } = await caller.shown
  const answers = Array.from({ length: people }, (_, index) => {
    const road = roads[index % roads.length] ?? first
    return codeOf(road.approvals.answer(person(`person-${index}`, 'administrator'), id, { verdict: 'approve' }))
  })
  const codes = await Promise.all(answers)
  const outcome = await caller.outcome
  return {
    heard: codes.filter((code) => code === 'done').length,
    late: codes.filter((code) => code === 'approval-answered').length,
    outcome: outcome.kind,
    ran: numbersIn(await lines()).filter((each) => each === n).length,
  }
}

/** One person approves while another denies; tells of each round who was heard, how it ended and whether it ran. */
export async function approveAndDeny(road: Road, rounds: number, width = 20) {
  const lines = await recordFromNowOn()
  const ends: { n: number; heard: string[]; outcome: string; state: string }[] = []
  const waiting = Array.from({ length: rounds }, (_, index) => index)
  async function work(): Promise<void> {
    for (let n = waiting.shift(); n !== undefined; n = waiting.shift()) {
      const caller = road.hold(n)
      const { id } = await caller.shown
      const say = (name: string, verdict: 'approve' | 'deny') =>
        codeOf(road.approvals.answer(person(name, 'administrator'), id, { verdict }))
      const order = n % 2 === 0 ? (['approve', 'deny'] as const) : (['deny', 'approve'] as const)
      const codes = await Promise.all(order.map((verdict) => say(`person-${verdict}`, verdict)))
      const outcome = await codeOf(caller.outcome)
      const { state } = await road.approvals.get(person('looker', 'administrator'), id)
      ends.push({ n, heard: order.filter((_, index) => codes[index] === 'done'), outcome, state })
    }
  }
  await Promise.all(Array.from({ length: width }, work))
  const ran = numbersIn(await lines())
  return ends.map((end) => ({ ...end, ran: ran.filter((n) => n === end.n).length }))
}

/** What must hold of each round: one is heard, one end stands, and it ran if and only if it was approved. */
export function isInOrder({ heard, outcome, state, ran }: Awaited<ReturnType<typeof approveAndDeny>>[number]): boolean {
  if (heard.length !== 1) return false
  if (heard[0] === 'approve') return outcome === 'answered' && state === 'used' && ran === 1
  return outcome === 'approval-denied' && state === 'denied' && ran === 0
}

/** Many calls at once against one grant; tells how many reached the server and what the grant says. */
export async function spendAtOnce(roads: readonly Road[], { calls, budget }: { calls: number; budget: number }) {
  const lines = await recordFromNowOn()
  const [first] = roads
  if (!first) throw new Error('Nobody is there')
  const giver = person('giver', 'administrator')
  const grant: Grant = await first.grants.add(giver, {
    tools: 'files_write_thing',
    principal: 'agent:tester',
    budget,
    expiresAt: new Date(Date.now() + 3_600_000).toISOString(),
  })
  const codes = await Promise.all(
    Array.from({ length: calls }, (_, n) => codeOf((roads[n % roads.length] ?? first).call(n))),
  )
  const { items } = await first.grants.list(giver, { limit: 10 })
  return {
    answered: codes.filter((code) => code === 'answered').length,
    reached: (await lines()).length,
    used: items.find(({ id }) => id === grant.id)?.used,
  }
}

/** Equal calls on several gateways wait for one approval that is answered on the last; tells how often it ran. */
export async function joinOver(roads: readonly Road[], calls: number) {
  const lines = await recordFromNowOn()
  const callers = Array.from({ length: calls }, (_, index) => roads[index % roads.length]?.hold(7))
  const shown = await Promise.all(callers.map((caller) => caller?.shown))
  const ids = new Set(shown.map((approval) => approval?.id))
  expect(ids.size).toBe(1)
  const [id = ''] = ids
  await roads.at(-1)?.approvals.answer(person('ada', 'administrator'), id, { verdict: 'approve' })
  const outcomes = await Promise.all(callers.map((caller) => codeOf(caller?.outcome ?? Promise.resolve())))
  return { outcomes: new Set(outcomes), ran: (await lines()).length }
}

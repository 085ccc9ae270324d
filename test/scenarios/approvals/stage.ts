import { mkdtempSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { WantedAnswer } from '../../../src/approvals/approvals.ts'
import type { CallOutcome } from '../../../src/calls/calls.ts'
import type { Approval, Verdict } from '../../../src/contract/approval.ts'
import { GatewayError } from '../../../src/contract/errors.ts'
import type { JsonObject } from '../../../src/contract/json.ts'
import type { Principal, Role } from '../../../src/contract/principal.ts'
import { createGateway, type Gateway, type GatewayOptions } from '../../../src/gateway/gateway.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { createIds } from '../../../src/lib/ids.ts'
import type { Caller } from '../../../src/wire/caller.ts'
import {
  type HttpFixture,
  type RecordedCall,
  readRecord,
  startHttpFixture,
  stdioFixture,
} from '../../fixtures/fixtures.ts'
import { type DatabaseKind, type Place, placeOn } from '../../storage/support.ts'
import { type ConfigInput, poll, quickSupervision, roomy } from '../../support/gateway.ts'

export const person = (name: string, role: Role): Principal => ({ kind: 'user', name, role, person: true })

/** Two administrators, two members of whom one is of the group `ops`, and an auditor. */
export const ada = person('ada', 'administrator')
export const bob = person('bob', 'administrator')
export const mia = person('mia', 'member')
export const gus = person('gus', 'member')
export const ivy = person('ivy', 'auditor')
/** An agent of mia's, and one that belongs to nobody. */
export const helper: Principal = { kind: 'agent', name: 'helper', owner: 'mia' }
export const stray: Principal = { kind: 'agent', name: 'stray' }

const password = 'correct horse battery'

/** One database, one recording server's file and one clock that stands still until it is moved. */
export type Stage = {
  readonly place: Place
  readonly time: { now: number }
  /** Starts a gateway there; the same name is the same data folder again. */
  open(name?: string, options?: Partial<GatewayOptions>): Promise<Gate>
  /** The calls that reached the server, by its own file. */
  lines(): Promise<RecordedCall[]>
  /** The names of the tools that were called, in order, without those that only serve the test. */
  received(): Promise<string[]>
  /** What the server says of its tools from its next listing on. */
  restate(gate: Gate, definitions: object): Promise<void>
}

export type Gate = {
  readonly gateway: Gateway
  close(): Promise<void>
}

export type StageOptions = {
  readonly config?: Partial<ConfigInput>
  /** Each gateway starts its own server, which can die. */
  readonly ownServer?: boolean
}

/** One server for all tests, which ends with this process: most of them need nothing from it but a record. */
let shared: Promise<HttpFixture> | undefined
const base = mkdtempSync(join(tmpdir(), 'sallyport-stage-'))
const record = join(base, 'record.jsonl')
const definitions = join(base, 'definitions.json')
const fixtureArgs = ['--record', record, '--definitions', definitions]

/** What reaches the server from this moment on. */
export async function recordFromNowOn(): Promise<() => Promise<RecordedCall[]>> {
  const before = (await readRecord(record)).length
  return async () => (await readRecord(record)).slice(before)
}

export async function toServer(ownServer = false) {
  if (ownServer) return stdioFixture('recording', fixtureArgs)
  shared ??= startHttpFixture('recording', ['--http', '--stdin-guard', ...fixtureArgs])
  return { transport: 'http' as const, url: (await shared).url }
}

export async function createStage(kind: DatabaseKind, options: StageOptions = {}): Promise<Stage> {
  const { config = {}, ownServer = false } = options
  const place = await placeOn(kind)
  const time = { now: Date.now() }
  await writeFile(definitions, '{}')
  const server = await toServer(ownServer)
  const lines = await recordFromNowOn()
  const clock = { ...systemClock, common: true as const, now: () => time.now }
  let introduced = false

  return {
    place,
    time,
    async open(name = 'first', options = {}) {
      const folder = join(place.folder, name)
      await mkdir(folder, { recursive: true })
      const configFile = join(folder, 'sallyport.json')
      const wanted = roomy({ servers: { files: server }, ...config })
      await writeFile(configFile, JSON.stringify(wanted))
      const gateway = await createGateway({
        configFile,
        dataFolder: join(folder, 'data'),
        databaseUrl: place.databaseUrl,
        environment: { ...process.env, SALLYPORT_KEY: Buffer.alloc(32, 7).toString('base64') },
        clock,
        ids: createIds(clock.now),
        supervision: quickSupervision,
        passwordCost: { logN: 4, r: 1, p: 1 },
        graceMs: 1000,
        ...options,
      })
      onTestFinished(() => gateway.close())
      await connected(gateway)
      if (!introduced) await introduce(gateway)
      introduced = true
      return { gateway, close: () => gateway.close() }
    },
    lines,
    async received() {
      return (await lines()).map(({ name }) => name).filter((name) => name !== 'announce_lists')
    },
    async restate(gate, stated) {
      await writeFile(definitions, JSON.stringify(stated))
      await ask(gate, { tool: 'announce_lists', given: { times: 1 } })
    },
  }
}

export async function connected(gateway: Gateway): Promise<void> {
  await poll(() => gateway.servers.list().every(({ state }) => state === 'connected') || undefined)
}

async function introduce({ identity, users, agents }: Gateway): Promise<void> {
  await identity.setup.finish({ code: identity.setup.code() ?? '', name: 'ada', password })
  await users.add(ada, { name: 'bob', role: 'administrator', password })
  await users.add(ada, { name: 'mia', role: 'member', password })
  await users.add(ada, { name: 'gus', role: 'member', password, groups: ['ops'] })
  await users.add(ada, { name: 'ivy', role: 'auditor', password })
  await agents.add(ada, { name: 'helper', owner: 'mia' })
}

/** A gateway with an own stage, for tests that need one. */
export async function openOn(kind: DatabaseKind, config: Partial<ConfigInput> = {}): Promise<Stage & Gate> {
  const stage = await createStage(kind, { config })
  return { ...stage, ...(await stage.open()) }
}

export type Asked = {
  readonly as?: Principal
  readonly tool?: string
  readonly given?: JsonObject
  /** Answers to questions of the server that travel with the call. */
  readonly input?: JsonObject
  /** `_meta` for the server, and trace context. */
  readonly meta?: JsonObject
  readonly trace?: JsonObject
  readonly signal?: AbortSignal
  /** Stays until a person has answered; hears the approval. */
  readonly hold?: ((approval: Approval) => void) | undefined
  /** Gets the function to call when the client has read its answer. Without it the answer counts as read at once. */
  readonly onDelivered?: Caller['onDelivered']
}

/** One call; without `hold` whoever asks hears at once that it waits. */
export function ask({ gateway }: Pick<Gate, 'gateway'>, asked: Asked = {}): Promise<CallOutcome> {
  const { as = helper, tool = 'write_thing', given = { n: 1 }, input, meta, trace, hold, onDelivered } = asked
  const signal = asked.signal ?? new AbortController().signal
  const present: Caller['present'] = async (approval, { settled }) => {
    hold?.(approval)
    await settled
    return undefined
  }
  return gateway.calls.run(
    {
      principal: as,
      surface: 'library',
      selector: { kind: 'all' },
      name: `files_${tool}`,
      arguments: given,
      input,
      meta,
      trace,
    },
    { signal, ...(hold && { present }), ...(onDelivered && { onDelivered }) },
  )
}

/** The approval that a call asked; fails when it ran or was refused. */
export async function requestApproval(gate: Pick<Gate, 'gateway'>, asked: Asked = {}): Promise<Approval> {
  const outcome = await ask(gate, asked)
  if (outcome.kind === 'waiting') return outcome.approval
  throw new Error(`It does not wait: ${outcome.kind === 'refused' ? outcome.error.message : outcome.call.state}`)
}

/** A caller that stays, once it waits. */
export async function held(
  gate: Pick<Gate, 'gateway'>,
  asked: Asked = {},
): Promise<{ outcome: Promise<CallOutcome>; approval: Approval }> {
  const shown = Promise.withResolvers<Approval>()
  const outcome = ask(gate, { ...asked, hold: shown.resolve })
  outcome.catch(shown.reject)
  return { outcome, approval: await shown.promise }
}

export function answer(
  { gateway }: Pick<Gate, 'gateway'>,
  by: Principal,
  { id }: Pick<Approval, 'id'>,
  wanted: Verdict | WantedAnswer = 'approve',
): Promise<Approval> {
  return gateway.approvals.answer(by, id, typeof wanted === 'string' ? { verdict: wanted } : wanted)
}

/** The code with which something was refused. */
export async function codeOf(action: Promise<unknown>): Promise<string> {
  try {
    const outcome = await action
    const { kind, error } = Object(outcome)
    return kind === 'refused' ? error.code : (kind ?? 'done')
  } catch (error) {
    if (error instanceof GatewayError) return error.code
    throw error
  }
}

export async function stateOf({ gateway }: Pick<Gate, 'gateway'>, { id }: Pick<Approval, 'id'>): Promise<string> {
  return (await gateway.approvals.get(ada, id)).state
}

export function textOf(outcome: CallOutcome): string {
  if (outcome.kind !== 'answered') throw new Error(outcome.kind === 'refused' ? outcome.error.message : 'It waits')
  const [first] = [outcome.answer.value().content].flat()
  return String(Object(first).text)
}

/** The kinds of the entries of a call, oldest first. */
export async function entriesOf({ gateway }: Pick<Gate, 'gateway'>, call: string): Promise<string[]> {
  const { items } = await gateway.audit.list({ limit: 50, call })
  return items.map(({ kind }) => kind).reverse()
}

import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { createApprovalStore, createGrantCache } from '../../src/approvals/approvals.ts'
import { type CallOutcome, type Calls, type CallsParts, createCalls } from '../../src/calls/calls.ts'
import { createCatalog, createNames } from '../../src/catalog/catalog.ts'
import { createConfig } from '../../src/config/config.ts'
import { type ErrorCode, GatewayError } from '../../src/contract/errors.ts'
import type { EventTable } from '../../src/contract/events.ts'
import type { JsonObject } from '../../src/contract/json.ts'
import { toPrincipalId } from '../../src/contract/principal.ts'
import { type Clock, systemClock } from '../../src/lib/clock.ts'
import { createEmitter } from '../../src/lib/emitter.ts'
import { createIds } from '../../src/lib/ids.ts'
import { silentLog } from '../../src/lib/log.ts'
import { createMasking } from '../../src/masking/masking.ts'
import { createPins } from '../../src/pins/pins.ts'
import { createServers } from '../../src/servers/servers.ts'
import { openStorage, type Storage } from '../../src/storage/storage.ts'
import { plainSeal } from '../config/record.ts'
import { readRecord, stdioFixture } from '../fixtures/fixtures.ts'
import { type Reader, readerOf } from '../storage/support.ts'
import { poll, roomy } from '../support/gateway.ts'

/** The road of a call from its real parts, with a recording server at its end. */
export type Road = {
  readonly calls: Calls
  readonly storage: Storage
  readonly folder: string
  readonly reader: Reader
  /** The numbers that the server was called with, by its own file. */
  received(): Promise<{ n: number; at: number }[]>
  call(tool: string, given?: JsonObject, signal?: AbortSignal): Promise<CallOutcome>
}

type RoadOptions = {
  maxPages?: number
  /** Puts something between the calls and their parts. */
  around?(parts: CallsParts, reader: Reader): CallsParts
}

/** Hastens what waits, so that a store that broke is tried again soon. */
const hasty: Clock = { ...systemClock, after: (milliseconds, task) => systemClock.after(milliseconds / 50, task) }

export async function buildRoad({ maxPages, around = (parts) => parts }: RoadOptions = {}): Promise<Road> {
  const base = await mkdtemp(join(tmpdir(), 'sallyport-test-'))
  const folder = join(base, 'data')
  const record = join(base, 'record.jsonl')
  const file = join(base, 'sallyport.json')
  await mkdir(folder)
  const files = stdioFixture('recording', ['--record', record])
  const rules = [{ tools: 'files_*', action: 'allow' as const }]
  await writeFile(file, JSON.stringify(roomy({ servers: { files }, rules })))

  const ids = createIds()
  const events = createEmitter<EventTable>(() => {})
  const log = silentLog
  const masking = createMasking()
  const storage = await openStorage({ folder, clock: hasty, ids, log, maxPages })
  const config = await createConfig({
    file,
    clock: systemClock,
    log,
    environment: {},
    emit: events.emit,
    record: storage.configChanges,
    seal: plainSeal,
  })
  const servers = createServers({
    folder,
    instance: storage.instance,
    version: '0.0.0',
    clock: systemClock,
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
  const pins = await createPins({ storage, clock: systemClock, log, emit: events.emit, onChange() {} })
  const names = await createNames({
    storage,
    config,
    findUserId: () => undefined,
    clock: systemClock,
    log,
    onChange() {},
  })
  const catalog = createCatalog({ config, servers, pins, names, onNamed() {} })
  const reader = readerOf(folder)
  const clock = systemClock
  const approvalStore = createApprovalStore({ storage, expiry: () => 600_000, clock, ids, log, emit: events.emit })
  const grants = await createGrantCache({ storage, log, findUser: () => undefined })
  const { emit } = events
  const needs = { storage, catalog, config, approvalStore, grants, servers, masking, clock, ids, emit }
  const parts: CallsParts = { ...needs, idOf: toPrincipalId }
  const calls = createCalls(around(parts, reader))
  servers.reconcile(config.connections())
  onTestFinished(async () => {
    await config.close()
    await calls.close(0)
    approvalStore.close()
    grants.close()
    await servers.close()
    pins.close()
    await storage.close()
    await rm(base, { recursive: true, force: true })
  })
  await poll(() => servers.lists('files'))

  return {
    calls,
    storage,
    folder,
    reader,
    async received() {
      const lines = await readRecord(record)
      return lines.map((line) => ({ n: Number(line.arguments?.n), at: Date.parse(line.at) }))
    },
    call: (tool, given = {}, signal = new AbortController().signal) =>
      calls.advance(
        {
          principal: { kind: 'agent', name: 'tester' },
          surface: 'library',
          selector: { kind: 'all' },
          name: `files_${tool}`,
          arguments: given,
        },
        { signal },
      ),
  }
}

/** The code with which a call was refused or broke, or how it ended. */
export async function howItWent(call: Promise<CallOutcome>): Promise<ErrorCode | string> {
  try {
    const outcome = await call
    return outcome.kind === 'refused' ? outcome.error.code : outcome.call.state
  } catch (error) {
    return error instanceof GatewayError ? error.code : String(error)
  }
}

/** Runs many at once, but not all. */
export async function inTurns<Item>(items: readonly Item[], width: number, run: (item: Item) => Promise<unknown>) {
  const waiting = [...items]
  const work = async () => {
    for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) await run(item)
  }
  await Promise.all(Array.from({ length: width }, work))
}

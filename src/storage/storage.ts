import { resolve } from 'node:path'
import type { GatewayError } from '../contract/errors.ts'
import type { Clock } from '../lib/clock.ts'
import type { Ids } from '../lib/ids.ts'
import type { Log } from '../lib/log.ts'
import { readOwnMark } from '../lib/processes.ts'
import { type Asking, createAsking } from './asking.ts'
import { loadAuditKeys } from './audit-key.ts'
import { type DatabaseKind, openBackend } from './backend.ts'
import type { Changes } from './changes.ts'
import { type Claims, createClaims } from './claim.ts'
import { type Compactor, createCompactor } from './compaction.ts'
import type { AuditTable } from './database.ts'
import { recover } from './recover.ts'
import { createRemovalStore, type RemovalStore } from './removal.ts'
import { type AgentStore, createAgentStore } from './tables/agents.ts'
import { type AuditStore, type Change, createAuditStore, toChangeEntry } from './tables/audit.ts'
import { type CallStore, createCallStore } from './tables/calls.ts'
import { type ChildStore, createChildStore } from './tables/children.ts'
import { type ConfigChangeStore, createConfigChangeStore } from './tables/config-changes.ts'
import { createDeliveryStore, type DeliveryStore } from './tables/deliveries.ts'
import { createDocumentStore, type DocumentStore } from './tables/documents.ts'
import { createGrantStore, type GrantStore } from './tables/grants.ts'
import { createIdempotencyStore, type IdempotencyStore } from './tables/idempotency.ts'
import { createInstanceStore, readBootId } from './tables/instances.ts'
import { createMemory, type Memory, toProbe } from './tables/memory.ts'
import { createPinStore, type PinStore } from './tables/pins.ts'
import { createQuestionStore, type QuestionStore } from './tables/questions.ts'
import { createRecordStore, type RecordStore, writeMark } from './tables/record.ts'
import { createResultStore, type ResultBounds, type ResultStore } from './tables/results.ts'
import { createSecretStore, type SecretStore } from './tables/secrets.ts'
import { createSessionStore, type SessionStore } from './tables/sessions.ts'
import { createSignInStore, type SignInStore } from './tables/sign-ins.ts'
import { createTokenStore, type TokenStore } from './tables/tokens.ts'
import { createUserStore, type UserStore } from './tables/users.ts'
import type { Unit } from './unit.ts'
import { createWriter } from './writer.ts'

export type Storage = {
  /** This instance's id, a row in `instances`. */
  readonly instance: string
  readonly kind: DatabaseKind
  /**
   * A call that may change something resolves only after its intent entry and its row are durable. A reading one
   * resolves at once, and its row and entries follow within 50 ms. Throws `storage-unavailable` when the store
   * cannot write: for reading calls too, while it is known to be broken.
   */
  claim: Claims['claim']
  /** A call that was refused: its row in its end state and one outcome entry, in one unit. */
  refuse: Claims['refuse']
  /** Refused calls that are counted and not recorded each: one entry. */
  countRefusals: Claims['countRefusals']
  /** Writes the one end of a call; a second one changes nothing. Does not wait, and survives a store that is briefly broken. */
  finish: Claims['finish']
  /** As `finish`, for a call with a key, and resolves when its end and what becomes of the key are durable. */
  finishOnce: Claims['finishOnce']
  /** The server answered after the call had ended. */
  markLate: Claims['markLate']
  readonly calls: Pick<CallStore, 'find' | 'list'>
  readonly audit: AuditStore & {
    append(change: Change): Promise<void>
    /** An entry of the gateway's own about the record itself; tells its place and that of the one before it. */
    mark(kind: 'anchor' | 'checkpoint', body: object): Promise<{ row: AuditTable; previous: string }>
  }
  /** The record as it stands on disk, chain by chain. */
  readonly record: RecordStore
  /** Milliseconds since 1970 by the clock of the database; undefined where it has none of its own. */
  databaseTime(): Promise<number | undefined>
  /** Takes a piece of the record away, for retention; tells how many rows went. */
  remove(piece: Unit): Promise<number>
  /** Gives room that is not used any more back to the disk. */
  readonly compact: Compactor['compact']
  readonly reclaim: Compactor['reclaim']
  readonly tokens: TokenStore
  readonly secrets: SecretStore
  readonly users: UserStore
  readonly signIns: SignInStore
  readonly agents: AgentStore
  readonly sessions: SessionStore
  readonly children: ChildStore
  readonly memory: Memory
  readonly documents: DocumentStore
  /** The record of changes of the configuration: intent before, outcome after. */
  readonly configChanges: ConfigChangeStore
  readonly pins: PinStore
  /** What is left of results that were cut. */
  readonly results: ResultStore
  /** Keys of calls that run once. */
  readonly keys: Pick<IdempotencyStore, 'find' | 'findOf' | 'removeAll'> & { sweep(): Promise<void> }
  readonly questions: Pick<
    QuestionStore,
    'find' | 'findLive' | 'list' | 'overdue' | 'openOf' | 'openBy' | 'countWaiting' | 'countBefore'
  >
  readonly asking: Asking
  readonly grants: Pick<GrantStore, 'active' | 'find' | 'list' | 'add' | 'revoke' | 'revokeAll'>
  /** The commits of a removal. */
  readonly removal: RemovalStore
  /** Messages to webhooks. */
  readonly deliveries: Omit<DeliveryStore, 'release'>
  /** Tells the instances on this database what to read again. */
  readonly changes: Changes
  /** Closes what dead instances left: their open calls become `unknown` with an outcome entry. */
  recover(): Promise<{ unknownCalls: number }>
  /** By which things expire: the database's clock where several gateways share one. */
  readonly clock: Clock
  healthy(): boolean
  /** Why it is not healthy. */
  findProblem(): GatewayError | undefined
  /** Everything queued is committed before it resolves; throws `storage-unavailable` if it cannot be. */
  flush(): Promise<void>
  close(): Promise<void>
}

export type StorageParts = {
  folder: string
  /** A PostgreSQL instead of the SQLite file in the folder. Holds a password: it goes nowhere else. */
  databaseUrl?: string | undefined
  clock: Clock
  ids: Ids
  log: Log
  /** The key that chains the record; one of the data folder's own if none is given. */
  auditKey?: Buffer
  /** Most pages of 4 KiB that the database may grow to; the disk is the limit without it. */
  maxPages?: number
  /** How much of cut results is kept. */
  resultBounds?: ResultBounds
}

/** Opens the one store of a data folder; throws `data-locked` while another gateway has it. */
export async function openStorage(parts: StorageParts): Promise<Storage> {
  const { folder, databaseUrl, ids, log, maxPages } = parts
  const instance = ids.next('instance')
  const auditKey = parts.auditKey ?? (await loadAuditKeys({ folder: resolve(folder), environment: {} }))[0]
  const bootId = readBootId(parts.clock.now())
  const mark = await readOwnMark()
  const where = { folder, databaseUrl, maxPages, clock: parts.clock }
  const backend = await openBackend({ ...where, instance, auditKey, bootId, mark, log })
  const { engine, reopen, findProblem, clock } = backend
  const now = () => clock.now()
  const writer = createWriter({ engine, reopen, findProblem, probe: () => toProbe(database, now()), clock, log })
  const database = backend.createDatabase(writer)
  const calls = createCallStore(database, instance)
  const audit = createAuditStore(database)
  const instances = createInstanceStore({
    database,
    instance,
    bootId,
    mark,
    findLiving: backend.findLiving?.(writer.query),
  })
  const record = createRecordStore(database)
  const keys = createIdempotencyStore(database, now)
  const questions = createQuestionStore(database)
  const grants = createGrantStore({ database, writer, now })
  const deliveries = createDeliveryStore({ database, writer, instance, now })
  const configChanges = createConfigChangeStore({ database, writer, ids, instance, now })
  const claims = createClaims({ writer, calls, keys, questions, grants, clock })
  let closing: Promise<void> | undefined

  /** Whoever asks sees all that happened before, the calls that wait for their shared commit included. */
  async function upToDate<Result>(ask: () => Promise<Result>): Promise<Result> {
    claims.flushReads()
    await writer.settled()
    return ask()
  }

  async function close(): Promise<void> {
    claims.flushReads()
    await backend.leave()
    await writer.close([instances.end(now())])
  }

  await writer
    .commit([instances.start(now())])
    .then(backend.begin)
    .catch(async (error: unknown) => {
      await close()
      throw error
    })

  return {
    instance,
    kind: backend.kind,
    claim: claims.claim,
    refuse: claims.refuse,
    countRefusals: claims.countRefusals,
    finish: claims.finish,
    finishOnce: claims.finishOnce,
    markLate: claims.markLate,
    calls: {
      find: (id) => upToDate(() => calls.find(id)),
      list: (query) => upToDate(() => calls.list(query)),
    },
    audit: {
      find: (of, sequence) => upToDate(() => audit.find(of, sequence)),
      list: (query) => upToDate(() => audit.list(query)),
      mark: (kind, body) => writeMark({ writer, record, instance, now, kind, body }),
      async append(change) {
        await writer.commit([{ entry: toChangeEntry(change, now()) }])
      },
    },
    record,
    async databaseTime() {
      return backend.databaseTime?.(writer.query)
    },
    async remove(piece) {
      const outcome = await writer.commit(piece)
      return outcome.kind === 'done' ? outcome.changes : 0
    },
    ...createCompactor({ writer, clock }),
    tokens: createTokenStore({ database, writer, now }),
    secrets: createSecretStore({ database, writer, now }),
    users: createUserStore({ database, writer, now }),
    signIns: createSignInStore({ database, writer, now }),
    agents: createAgentStore({ database, writer, now }),
    sessions: createSessionStore({ database, writer, now }),
    children: createChildStore({ database, writer, instances, instance, bootId, now }),
    memory: createMemory({ database, writer, now }),
    documents: createDocumentStore({ database, writer, now }),
    configChanges,
    pins: createPinStore({ database, writer, now }),
    changes: backend.changes,
    results: createResultStore({ database, writer, now, bounds: parts.resultBounds }),
    keys: {
      find: keys.find,
      findOf: keys.findOf,
      removeAll: keys.removeAll,
      async sweep() {
        await writer.commit([keys.sweep()])
      },
    },
    questions,
    asking: createAsking({ writer, calls, questions, grants, keys, instance, now }),
    // A refund may be on its way.
    grants: {
      ...grants,
      active: () => upToDate(grants.active),
      find: (id) => upToDate(() => grants.find(id)),
      list: (query) => upToDate(() => grants.list(query)),
    },
    removal: createRemovalStore({ writer, now }),
    deliveries,
    recover: () =>
      recover({
        writer,
        calls,
        deliveries,
        instances,
        configChanges: backend.kind === 'sqlite' ? undefined : configChanges,
        holdDeath: backend.holdDeath,
        now,
      }),
    clock,
    healthy: () => writer.findProblem() === undefined,
    findProblem: writer.findProblem,
    async flush() {
      claims.flushReads()
      await writer.flush()
    },
    close() {
      closing ??= close()
      return closing
    },
  }
}

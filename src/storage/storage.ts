import { resolve } from 'node:path'
import type { GatewayError } from '../contract/errors.ts'
import type { Clock } from '../lib/clock.ts'
import type { Ids } from '../lib/ids.ts'
import type { Log } from '../lib/log.ts'
import { readOwnMark } from '../lib/processes.ts'
import { type ApprovalChanges, createApprovalChanges } from './approval-changes.ts'
import { loadAuditKeys } from './audit-key.ts'
import { type DatabaseKind, openBackend } from './backend.ts'
import type { Changes } from './changes.ts'
import { type Claims, createClaims } from './claim.ts'
import { type Compactor, createCompactor } from './compaction.ts'
import type { AuditTable } from './database.ts'
import { recover } from './recover.ts'
import { createRemovalStore, type RemovalStore } from './removal.ts'
import { type AcceptedFileStore, createAcceptedFileStore } from './tables/accepted-files.ts'
import { type AgentStore, createAgentStore } from './tables/agents.ts'
import { createStoredApprovals, type StoredApprovals } from './tables/approvals.ts'
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
import { createRecordStore, type RecordStore, writeMark } from './tables/record.ts'
import { createResultStore, type ResultBounds, type ResultStore } from './tables/results.ts'
import { createSecretStore, type SecretStore } from './tables/secrets.ts'
import { createServerEntryStore, type ServerEntryStore } from './tables/server-entries.ts'
import { createSessionStore, type SessionStore } from './tables/sessions.ts'
import { createSignInStore, type SignInStore } from './tables/sign-ins.ts'
import { createTokenStore, type TokenStore } from './tables/tokens.ts'
import { createToolNameStore, type ToolNameStore } from './tables/tool-names.ts'
import { createUserStore, type UserStore } from './tables/users.ts'
import type { Unit } from './unit.ts'
import { createWriter } from './writer.ts'

export type Storage = {
  /** This instance's id, a row in `instances`. */
  readonly instance: string
  readonly kind: DatabaseKind
  /**
   * Resolves only after the intent entry and the row of the call are durable. A read call resolves at once, and its row
   * and entries follow within 50 ms. Throws `storage-unavailable` if the database cannot be written; for read calls,
   * only while that is already known.
   */
  claim: Claims['claim']
  /** Records a refused call: its row with the final state and one outcome entry, in one unit. */
  refuse: Claims['refuse']
  /** Records one entry for many refused calls that have no entries of their own. */
  countRefusals: Claims['countRefusals']
  /**
   * Writes the outcome of a call. Only the first outcome is written. Does not wait, and is queued if the database is
   * briefly unavailable.
   */
  finish: Claims['finish']
  /** Like `finish`, for a call with an idempotency key. Resolves when the outcome and the state of the key are durable. */
  finishOnce: Claims['finishOnce']
  /** Records that the server answered after the call had ended. */
  markLate: Claims['markLate']
  readonly calls: Pick<CallStore, 'find' | 'list'>
  readonly audit: AuditStore & {
    append(change: Change): Promise<void>
    /** Writes an entry of the gateway about the audit itself. Returns the entry and the hash of the entry before. */
    mark(kind: 'anchor' | 'checkpoint', body: object): Promise<{ row: AuditTable; previous: string }>
  }
  /** The audit entries on disk, chain by chain. */
  readonly record: RecordStore
  /** Milliseconds since 1970 from the database's own clock; undefined for SQLite. */
  databaseTime(): Promise<number | undefined>
  /** Removes old entries, for retention. Returns the number of removed rows. */
  remove(piece: Unit): Promise<number>
  /** Returns unused space to the disk. */
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
  /** The accepted contents of files of servers. */
  readonly acceptedFiles: AcceptedFileStore
  /** Records changes of the configuration: the intent before, the outcome after. */
  readonly configChanges: ConfigChangeStore
  readonly pins: PinStore
  /** When each server entry was first seen and last changed. */
  readonly serverEntries: ServerEntryStore
  /** Which tool each public name belongs to. */
  readonly toolNames: ToolNameStore
  /** The stored rest of truncated results. */
  readonly results: ResultStore
  /** Idempotency keys of calls. */
  readonly keys: Pick<IdempotencyStore, 'find' | 'findOf' | 'removeAll'> & { sweep(): Promise<void> }
  readonly approvals: Pick<
    StoredApprovals,
    'find' | 'findLive' | 'list' | 'overdue' | 'openOf' | 'openBy' | 'countWaiting' | 'countBefore'
  >
  readonly approvalChanges: ApprovalChanges
  readonly grants: Pick<GrantStore, 'active' | 'find' | 'list' | 'add' | 'revoke' | 'revokeAll'>
  /** Commits the steps of a removal. */
  readonly removal: RemovalStore
  /** Deliveries to webhooks. */
  readonly deliveries: Omit<DeliveryStore, 'release'>
  /** Announces to all instances on this database which data to read again. */
  readonly changes: Changes
  /** Closes the work of dead instances: their running calls become `unknown` with an outcome entry. */
  recover(): Promise<{ unknownCalls: number }>
  /** The clock for expiry: the database's clock if several gateways share the database. */
  readonly clock: Clock
  healthy(): boolean
  /** Why the storage is not healthy. */
  findProblem(): GatewayError | undefined
  /** Resolves when everything queued is committed. Throws `storage-unavailable` if that is not possible. */
  flush(): Promise<void>
  close(): Promise<void>
}

export type StorageParts = {
  folder: string
  /**
   * Uses this PostgreSQL database instead of the SQLite file in the folder. Contains a password, so it must not be
   * logged.
   */
  databaseUrl?: string | undefined
  clock: Clock
  ids: Ids
  log: Log
  /** The key that chains the audit entries. Default: the data folder's own key. */
  auditKey?: Buffer
  /** The maximum number of 4 KiB pages of the database. Default: unlimited. */
  maxPages?: number
  /** How much of truncated results is stored. */
  resultBounds?: ResultBounds
}

/** Opens the storage of a data folder. Throws `data-locked` if another gateway has it open. */
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
  const approvals = createStoredApprovals(database)
  const grants = createGrantStore({ database, writer, now })
  const deliveries = createDeliveryStore({ database, writer, instance, now })
  const configChanges = createConfigChangeStore({ database, writer, ids, instance, now })
  const claims = createClaims({ writer, calls, keys, approvals, grants, clock })
  let closing: Promise<void> | undefined

  /** Runs a query after all earlier writes are committed, including buffered read calls. */
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
    acceptedFiles: createAcceptedFileStore({ database, writer, now }),
    configChanges,
    pins: createPinStore({ database, writer, now }),
    serverEntries: createServerEntryStore({ database, writer }),
    toolNames: createToolNameStore({ database, writer, now }),
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
    approvals,
    approvalChanges: createApprovalChanges({ writer, calls, approvals, grants, keys, instance, now }),
    // Waits for queued refunds.
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
        lockDeadInstance: backend.lockDeadInstance,
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

import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { onTestFinished } from 'vitest'
import type { CallEnd, ResolvedCall } from '../../src/contract/permit.ts'
import { type Clock, systemClock } from '../../src/lib/clock.ts'
import { createIds } from '../../src/lib/ids.ts'
import { silentLog } from '../../src/lib/log.ts'
import { openStorage, type Storage, type StorageParts } from '../../src/storage/storage.ts'
import { poll } from '../support/gateway.ts'
import { connectTo, emptyDatabase, freshDatabase } from '../support/postgres.ts'

export const ids = createIds()
export const auditKey = Buffer.alloc(32, 1)

export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-test-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Every promise of the store holds on both: `describe.each(databases)('on %s', (kind) => …)`. */
export const databases = ['SQLite', 'PostgreSQL'] as const
export type DatabaseKind = (typeof databases)[number]

/** Where a store keeps its data; gone when the test is over. */
export type Place = { readonly folder: string; readonly databaseUrl?: string }

export async function placeOn(kind: DatabaseKind): Promise<Place> {
  const folder = temporaryFolder()
  return kind === 'SQLite' ? { folder } : { folder, databaseUrl: await freshDatabase() }
}

/** The same without tables, also on PostgreSQL. */
export async function emptyPlaceOn(kind: DatabaseKind): Promise<Place> {
  const folder = temporaryFolder()
  return kind === 'SQLite' ? { folder } : { folder, databaseUrl: await emptyDatabase() }
}

export async function open(place: string | Place, more: Partial<StorageParts> = {}): Promise<Storage> {
  const where = typeof place === 'string' ? { folder: place } : place
  const storage = await openStorage({ ...where, clock: systemClock, ids, log: silentLog, ...more })
  onTestFinished(() => storage.close())
  return storage
}

export function callOf(risk: ResolvedCall['risk'], more: Partial<ResolvedCall> = {}): ResolvedCall {
  return {
    id: ids.next('call'),
    method: 'tools/call',
    principal: 'agent:reviewer',
    principalId: 'agent-reviewer',
    surface: 'mcp',
    connection: 'connection-1',
    server: 'files',
    scope: 'global',
    tool: 'files_change',
    original: 'change',
    arguments: { path: '/srv/docs/a.txt' },
    risk,
    decision: 'rule 1 allows it',
    startedAt: Date.now(),
    ...more,
  }
}

export function endOf(state: CallEnd['state'] = 'ok', more: Partial<CallEnd> = {}): CallEnd {
  return { state, endedAt: Date.now(), durationMs: 3, resultBytes: 12, ...more }
}

export type Row = Record<string, unknown>

/** Somebody else who reads the same file: sees what is committed and nothing more. */
export type Reader = { all(sql: string, ...parameters: unknown[]): Row[]; state(call: string): unknown }

export function readerOf(folder: string): Reader {
  const connection = new Sqlite(join(folder, 'sallyport.db'), { readonly: true })
  onTestFinished(() => void connection.close())
  const all = (sql: string, ...parameters: unknown[]) => connection.prepare<unknown[], Row>(sql).all(...parameters)
  return { all, state: (call) => all('select state from calls where id = ?', call)[0]?.state }
}

/** The same on either database. */
export type Observer = {
  all(sql: string, ...parameters: unknown[]): Promise<Row[]>
  state(call: string): Promise<unknown>
}

export function observe({ folder, databaseUrl }: Place): Observer {
  const all = databaseUrl === undefined ? observeFile(folder) : observeDatabase(databaseUrl)
  return { all, state: async (call) => (await all('select state from calls where id = ?', call))[0]?.state }
}

function observeFile(folder: string): Observer['all'] {
  const reader = readerOf(folder)
  return async (sql, ...parameters) => reader.all(sql, ...parameters)
}

function observeDatabase(databaseUrl: string): Observer['all'] {
  const client = connectTo(databaseUrl)
  onTestFinished(async () => (await client).end())
  return async (sql, ...parameters) => {
    let place = 0
    const text = sql.replaceAll('?', () => `$${++place}`)
    return (await (await client).query(text, parameters)).rows
  }
}

/** Somebody else who changes the file, as an operator at a terminal could. */
export function changeFile(folder: string, ...statements: string[]): void {
  const connection = new Sqlite(join(folder, 'sallyport.db'), { timeout: 10_000 })
  try {
    for (const statement of statements) connection.exec(statement)
  } finally {
    connection.close()
  }
}

/** A clock that jumps; `skip` resolves when the store goes by the new time, its lease included. */
export function jumpingClock(): Clock & { skip(storage: Storage, milliseconds: number): Promise<void> } {
  let skipped = 0
  return {
    ...systemClock,
    common: true,
    now: () => systemClock.now() + skipped,
    async skip(storage, milliseconds) {
      skipped += milliseconds
      const change = { principal: 'test', subject: 'clock', body: {} }
      await poll(() =>
        storage.audit.append(change).then(
          () => true,
          () => undefined,
        ),
      )
    },
  }
}

/** How many commits went to the disk so far. */
export async function countCommits(place: Place): Promise<number> {
  if (place.databaseUrl === undefined) return countFrames(place.folder)
  const [row] = await observe(place).all('select sum(number) as commits from batches')
  return Number(row?.commits)
}

/** The frames of the write-ahead log that end a transaction: each is one commit. */
function countFrames(folder: string): number {
  const log = readFileSync(join(folder, 'sallyport.db-wal'))
  const pageSize = log.readUInt32BE(8)
  const salt = log.subarray(16, 24)
  let commits = 0
  for (let at = 32; at + 24 + pageSize <= log.length; at += 24 + pageSize) {
    if (!log.subarray(at + 8, at + 16).equals(salt)) break
    if (log.readUInt32BE(at + 4) !== 0) commits++
  }
  return commits
}

/** The record of an instance is 1, 2, 3 and so on. */
export function sequencesOf(reader: Reader, instance: string): unknown[] {
  return reader.all('select sequence from audit where instance = ? order by sequence', instance).map((r) => r.sequence)
}

export async function sequencesIn(observer: Observer, instance: string): Promise<unknown[]> {
  const rows = await observer.all('select sequence from audit where instance = ? order by sequence', instance)
  return rows.map(({ sequence }) => sequence)
}

export function numbersUpTo(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index + 1)
}

import { cpSync } from 'node:fs'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { type Audit, type AuditParts, createAudit, verifyStopped } from '../../src/audit/audit.ts'
import type { AuditReport } from '../../src/contract/audit.ts'
import { AuditSettings } from '../../src/contract/config.ts'
import type { ResolvedCall } from '../../src/contract/permit.ts'
import { type Clock, systemClock } from '../../src/lib/clock.ts'
import { createIds } from '../../src/lib/ids.ts'
import { silentLog } from '../../src/lib/log.ts'
import { loadAuditKeys } from '../../src/storage/audit-key.ts'
import { openStorage, type Storage } from '../../src/storage/storage.ts'
import { callOf as anyCall, endOf, type Place, temporaryFolder } from '../storage/support.ts'

export type Recording = { readonly storage: Storage; readonly audit: Audit; close(): Promise<void> }

export type RecordingOptions = {
  readonly settings?: object
  readonly clock?: Clock
  readonly environment?: Record<string, string | undefined>
  readonly post?: AuditParts['post']
}

/** What a gateway has of the record: its store, and whoever proves it. */
export async function openRecord(place: string | Place, options: RecordingOptions = {}): Promise<Recording> {
  const { folder, databaseUrl } = typeof place === 'string' ? { folder: place } : place
  const { settings = {}, environment = {}, clock = systemClock, post = async () => {} } = options
  const keys = await loadAuditKeys({ folder, environment })
  const storage = await openStorage({
    folder,
    databaseUrl,
    clock,
    ids: createIds(clock.now),
    log: silentLog,
    auditKey: keys[0],
  })
  await storage.recover()
  const parsed = AuditSettings.parse(settings)
  const audit = createAudit({ storage, keys, folder, settings: () => parsed, post, clock, log: silentLog })
  await audit.anchor()
  return {
    storage,
    audit,
    async close() {
      await audit.close()
      await storage.close()
    },
  }
}

/** Calls of every kind, and a change: three entries for each round, or so. */
export async function fill(storage: Storage, rounds: number, now = () => Date.now()): Promise<void> {
  const ids = createIds(now)
  const callOf = (risk: ResolvedCall['risk'], more: Partial<ResolvedCall>) =>
    anyCall(risk, { id: ids.next('call'), ...more })
  for (let round = 0; round < rounds; round++) {
    const startedAt = now()
    const write = await storage.claim(callOf('write', { arguments: { round }, startedAt }))
    storage.finish(write, endOf('ok', { endedAt: now() }))
    const read = await storage.claim(callOf('read', { arguments: { round }, startedAt }))
    storage.finish(read, endOf('tool-error', { endedAt: now() }))
    const end = endOf('denied', { endedAt: now(), error: { code: 'call-denied', message: 'no' } })
    await storage.refuse(callOf('danger', { startedAt }), end)
    await storage.audit.append({ principal: 'user:admin', subject: 'server:files', body: { change: 'added', round } })
  }
  await storage.flush()
}

/** The record of three gateways, one after the other, all of it anchored. */
export async function writeRecord(folder: string, rounds = 3): Promise<void> {
  for (let start = 0; start < 3; start++) {
    const { storage, audit, close } = await openRecord(folder)
    await fill(storage, rounds)
    await audit.anchor()
    await fill(storage, 1)
    await close()
  }
}

export function copyOf(folder: string): string {
  const copy = join(temporaryFolder(), 'data')
  cpSync(folder, copy, { recursive: true })
  return copy
}

/** Somebody with the file in his hands and without the key. */
export function tamper(folder: string, change: (file: Sqlite.Database) => void): void {
  const file = new Sqlite(join(folder, 'sallyport.db'))
  try {
    change(file)
  } finally {
    file.close()
  }
}

export function verify(folder: string, anchors: string[] = [], now = Date.now()): Promise<AuditReport> {
  return verifyStopped({ folder, anchors, now, signal: new AbortController().signal })
}

export const kindsOf = ({ findings }: AuditReport): string[] => [...new Set(findings.map(({ kind }) => kind))].sort()

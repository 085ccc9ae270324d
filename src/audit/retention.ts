import type { ChainMark, CheckpointBody } from '../contract/audit.ts'
import type { Clock } from '../lib/clock.ts'
import { crashPoint } from '../lib/crash-point.ts'
import { toIdFloor } from '../lib/ids.ts'
import type { Log } from '../lib/log.ts'
import type { Storage } from '../storage/storage.ts'
import { createDatabaseSource } from './database-source.ts'
import { createFindings } from './findings.ts'
import { readCheckpoints } from './verify.ts'

type RetentionParts = {
  readonly storage: Pick<Storage, 'audit' | 'record' | 'remove'>
  readonly days: number
  /** Whether what the record says now stands in the files outside. */
  anchorDurably(): Promise<boolean>
  readonly clock: Clock
  readonly log: Log
  readonly signal: AbortSignal
}

const dayMs = 86_400_000
const perPiece = 1000

/** Removes what is older, only behind a checkpoint that says where each kept chain begins, and only once that is anchored. */
export async function applyRetention(parts: RetentionParts): Promise<void> {
  const { storage, days, anchorDurably, clock, log, signal } = parts
  const before = clock.now() - days * dayMs
  const { removed, grown } = await findRemovable(storage.record, before)
  if (grown === 0) return
  await storage.audit.mark('checkpoint', { before, removed } satisfies CheckpointBody)
  crashPoint('a checkpoint stands in the record, nothing is removed')
  if (!(await anchorDurably())) {
    log.warn({}, 'nothing is removed from the record: its checkpoint could not be anchored')
    return
  }
  for (const [instance, { sequence }] of Object.entries(removed)) {
    let first = (await storage.record.entries(instance, 0, 1))[0]?.sequence ?? sequence + 1
    while (first <= sequence && !signal.aborted) {
      const through = Math.min(sequence, first + perPiece - 1)
      await storage.remove(storage.record.removal(instance, through))
      crashPoint('a piece of the record is removed')
      first = through + 1
    }
  }
  const floor = toIdFloor('call', before)
  while (!signal.aborted && (await storage.remove(storage.record.callRemoval(floor, before, perPiece))) > 0);
  log.info({ before: new Date(before).toISOString(), entries: grown }, 'retention removed old entries of the record')
}

type Removable = { readonly removed: Record<string, ChainMark>; readonly grown: number }

/** Where each chain will begin, also those that begin later already; and how many entries go. */
async function findRemovable(record: Storage['record'], before: number): Promise<Removable> {
  const earlier = (
    await readCheckpoints(
      createDatabaseSource(record, async () => undefined),
      createFindings(),
    )
  ).removed
  const removed: Record<string, ChainMark> = {}
  let grown = 0
  for (let instance = await record.nextChain(''); instance !== undefined; instance = await record.nextChain(instance)) {
    const [first] = await record.entries(instance, 0, 1)
    const cut = (await record.firstSince(instance, before)) - 1
    const known = earlier.get(instance)
    if (known) removed[instance] = known
    if (!first || cut < first.sequence || cut <= 0) continue
    const [last] = await record.entries(instance, cut - 1, 1)
    if (!last) continue
    grown += last.sequence - first.sequence + 1
    removed[instance] = { sequence: last.sequence, hash: last.hash }
  }
  return { removed, grown }
}

import type { CheckpointBody } from '../contract/audit.ts'
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
/** Once a day is enough: each time costs an entry that names all chains that were cut. */
const slackMs = dayMs

/** Removes what is older, only behind a checkpoint that says where each kept chain begins, and only once that is anchored. */
export async function applyRetention(parts: RetentionParts): Promise<void> {
  const { storage, days, anchorDurably, clock, log, signal } = parts
  const before = clock.now() - days * dayMs
  if ((await storage.audit.list({ limit: 1, until: before - slackMs })).items.length === 0) return
  const { removed, grown } = await findRemovable(storage.record, before)
  if (grown === 0) return
  await storage.audit.mark('checkpoint', { before, removed } satisfies CheckpointBody)
  crashPoint('a checkpoint stands in the record, nothing is removed')
  if (!(await anchorDurably())) {
    log.warn({}, 'nothing is removed from the record: its checkpoint could not be anchored')
    return
  }
  for (const [instance, { sequence }] of Object.entries(removed)) await remove(parts, instance, sequence)
  const floor = toIdFloor('call', before)
  while (!signal.aborted && (await storage.remove(storage.record.callRemoval(floor, before, perPiece))) > 0);
  while (!signal.aborted && (await storage.remove(storage.record.questionRemoval(before, perPiece))) > 0);
  log.info({ before: new Date(before).toISOString(), entries: grown }, 'retention removed old entries of the record')
}

/** From the end: what is left at any moment builds on the beginning of the chain, and the rest on the checkpoint. */
async function remove({ storage, signal }: RetentionParts, instance: string, through: number): Promise<void> {
  const [first] = await storage.record.entries(instance, 0, 1)
  if (!first) return
  for (let last = through; last >= first.sequence && !signal.aborted; last -= perPiece) {
    await storage.remove(storage.record.removal(instance, Math.max(first.sequence, last - perPiece + 1), last))
    crashPoint('a piece of the record is removed')
  }
}

type Removable = { readonly removed: CheckpointBody['removed']; readonly grown: number }

/** Where each chain will begin, also those that begin later already; and how many entries go. */
async function findRemovable(record: Storage['record'], before: number): Promise<Removable> {
  const source = createDatabaseSource(record, async () => undefined)
  const earlier = (await readCheckpoints(source, createFindings())).removed
  const removed: CheckpointBody['removed'] = {}
  let grown = 0
  for (let instance = await record.nextChain(''); instance !== undefined; instance = await record.nextChain(instance)) {
    const [first] = await record.entries(instance, 0, 1)
    if (!first) continue
    const marks = earlier.get(instance) ?? []
    const after = marks.find(({ sequence }) => sequence === first.sequence - 1)
    const cut = (await record.firstSince(instance, before)) - 1
    const [last] = cut >= first.sequence ? await record.entries(instance, cut - 1, 1) : []
    if (last) {
      grown += last.sequence - first.sequence + 1
      // An earlier removal may have been interrupted: what it has named is gone in part already.
      const { sequence, hash } = marks.find((mark) => mark.sequence > last.sequence) ?? last
      removed[instance] = { sequence, hash, ...(after && { after }) }
    } else if (after) removed[instance] = after
  }
  return { removed, grown }
}

import { type AuditRemoval, type ChainMark, CheckpointBody } from '../contract/audit.ts'
import type { AuditTable } from '../storage/database.ts'
import { toTime } from './chain-check.ts'
import { mostDriftMs } from './clock-check.ts'
import type { Findings } from './findings.ts'
import { parseBody } from './known-anchors.ts'
import type { RecordSource } from './verify.ts'

export type Checkpoints = {
  /** The latest time before which retention removed entries. */
  readonly before: number
  /** The entries up to which retention removed each chain. */
  readonly removed: ReadonlyMap<string, readonly ChainMark[]>
  /** The last removals, newest first. */
  readonly removals: readonly AuditRemoval[]
  /** The checkpoints of each chain. */
  readonly written: ReadonlyMap<string, readonly WrittenCheckpoint[]>
}

type WrittenCheckpoint = { readonly sequence: number; readonly at: number; readonly before: number }

const mostRemovals = 100

/** Reads the checkpoints. They are not verified here: the caller must also check the chains that contain them. */
export async function readCheckpoints(source: Pick<RecordSource, 'marks'>, findings: Findings): Promise<Checkpoints> {
  const removed = new Map<string, ChainMark[]>()
  const written = new Map<string, WrittenCheckpoint[]>()
  const removals: AuditRemoval[] = []
  let before = 0
  for await (const row of source.marks('checkpoint')) {
    const body = parseBody(row, CheckpointBody, findings)
    if (!body) continue
    before = Math.max(before, body.before)
    removals.unshift(toRemoval(row, body))
    removals.length = Math.min(removals.length, mostRemovals)
    const { sequence, at } = row
    written.set(row.instance, [...(written.get(row.instance) ?? []), { sequence, at, before: body.before }])
    for (const [instance, { after, ...mark }] of Object.entries(body.removed)) {
      const marks = removed.get(instance) ?? []
      removed.set(instance, marks)
      for (const found of after ? [after, mark] : [mark]) {
        if (!marks.some(({ sequence, hash }) => sequence === found.sequence && hash === found.hash)) marks.push(found)
      }
    }
  }
  return { before, removed, removals, written }
}

function toRemoval(row: AuditTable, { before, entries, days }: CheckpointBody): AuditRemoval {
  return {
    checkpoint: `${row.instance}:${row.sequence}`,
    at: toTime(row.at),
    before: toTime(before),
    ...(entries !== undefined && { entries }),
    ...(days !== undefined && { days }),
  }
}

/**
 * Finds checkpoints that were written while the clock was far ahead, so that entries were removed too early. Such a
 * clock is ahead of the clock of the verification, or later entries of the chain have earlier times because the clock
 * was corrected.
 */
export function createRemovalCheck({ written }: Checkpoints, now: number, findings: Findings) {
  const reported = new Set<WrittenCheckpoint>()
  for (const [instance, marks] of written) {
    for (const mark of marks) if (mark.at - now > mostDriftMs) add(instance, mark, `it is ${toTime(now)} now`)
  }
  return {
    feed({ instance, sequence, at }: AuditTable): void {
      for (const mark of written.get(instance) ?? []) {
        if (sequence <= mark.sequence || mark.at - at <= mostDriftMs || reported.has(mark)) continue
        add(instance, mark, `entry ${instance}:${sequence}, written later, is from ${toTime(at)}`)
      }
    },
  }

  function add(instance: string, mark: WrittenCheckpoint, why: string): void {
    reported.add(mark)
    const { sequence } = mark
    const message = `Retention removed entries before ${toTime(mark.before)} with a wrong clock: checkpoint ${instance}:${sequence} is from ${toTime(mark.at)}, but ${why}`
    findings.add({ kind: 'retention-clock', message, instance, sequence })
  }
}

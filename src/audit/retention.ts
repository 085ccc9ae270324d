import type { CheckpointBody } from '../contract/audit.ts'
import { GatewayError } from '../contract/errors.ts'
import type { Status } from '../contract/status.ts'
import { type Clock, toIso } from '../lib/clock.ts'
import { crashPoint } from '../lib/crash-point.ts'
import { toIdFloor } from '../lib/ids.ts'
import { parseJson } from '../lib/json.ts'
import type { Log } from '../lib/log.ts'
import { countOf } from '../shared/words.ts'
import type { Storage } from '../storage/storage.ts'
import { readCheckpoints } from './checkpoints.ts'
import { type ClockJudgement, ClockRecord, judgeClock } from './clock-check.ts'
import { createDatabaseSource } from './database-source.ts'
import { createFindings } from './findings.ts'

type RetentionStatus = NonNullable<Status['retention']>

export type Retention = {
  /**
   * One pass: checks the clock, then removes a limited part of the entries that are too old. Returns whether entries
   * were removed.
   */
  apply(days: number | undefined, signal: AbortSignal): Promise<boolean>
  /** An administrator confirms the current time. It must agree with the clock of this gateway. */
  confirmClock(principal: string, time: number): Promise<void>
  status(days: number | undefined): RetentionStatus | undefined
}

export type RetentionParts = {
  readonly storage: Pick<Storage, 'audit' | 'record' | 'remove' | 'memory' | 'instance' | 'databaseTime'>
  /** Writes an anchor. Returns whether the anchor files contain it. */
  anchorDurably(): Promise<boolean>
  readonly clock: Clock
  readonly log: Log
}

const dayMs = 86_400_000
const perPiece = 1000
/** Entries are removed at most once a day, because each removal writes a checkpoint that names all shortened chains. */
const slackMs = dayMs
/** One pass removes at most this time span from the beginning of the audit, so that a mistake can be noticed. */
const mostPerPassMs = 31 * dayMs
/** How much the gateway's clock may differ from the database's clock, or from the time that an administrator confirms. */
const mostDifferenceMs = 3_600_000
const clockKey = 'retention-clock'

/**
 * Removes old entries. First a checkpoint is written that names the new beginning of each chain. The clock must be
 * trusted.
 */
export function createRetention({ storage, anchorDurably, clock, log }: RetentionParts): Retention {
  let held: string | undefined
  let last: RetentionStatus['last']
  let readAt = clock.monotonic()

  return {
    async apply(days, signal) {
      const judgement = await checkClock()
      if (days === undefined) return false
      const databaseTime = await storage.databaseTime()
      const reason = toReason(judgement, databaseTime)
      await reportHold(reason, judgement)
      if (reason !== undefined) return false
      const before = Math.min(clock.now(), databaseTime ?? Number.POSITIVE_INFINITY) - days * dayMs
      const behind = Object.fromEntries(Object.entries(judgement.record.behind).filter(([, time]) => time >= before))
      remember({ ...judgement.record, behind })
      return removeBefore({ before, days, behind, signal })
    },
    async confirmClock(principal, time) {
      const now = clock.now()
      if (Math.abs(now - time) > mostDifferenceMs) {
        const message = `The clock of this gateway shows ${toIso(now)}, which differs from ${toIso(time)} by more than an hour`
        throw new GatewayError('request-invalid', message, { clock: toIso(now) })
      }
      const known = await read()
      remember({ confirmed: now, behind: known.behind })
      held = undefined
      const body = { action: 'clock-confirmed', clock: toIso(now), before: toIso(known.confirmed) }
      await storage.audit.append({ principal, subject: 'retention', body })
    },
    status(days) {
      if (days === undefined) return undefined
      return { days, ...(held !== undefined && { held }), ...(last && { last }) }
    },
  }

  async function checkClock(): Promise<ClockJudgement> {
    const known = await read()
    const monotonic = clock.monotonic()
    const ranMs = monotonic - readAt
    readAt = monotonic
    const judgement = judgeClock(known, { now: clock.now(), ranMs, instance: storage.instance })
    remember(judgement.record)
    return judgement
  }

  /** If no state is stored yet, the newest entry of earlier gateways is the last confirmed time. */
  async function read(): Promise<ClockRecord> {
    const text = await storage.memory.get(clockKey)
    if (text !== undefined) return ClockRecord.parse(parseJson(text))
    const newest = await storage.record.newestOfOthers(storage.instance)
    return { confirmed: newest ?? clock.now(), behind: {} }
  }

  function remember(record: ClockRecord): void {
    storage.memory.set(clockKey, JSON.stringify(record))
  }

  function toReason({ doubt, record }: ClockJudgement, databaseTime: number | undefined): string | undefined {
    const now = clock.now()
    if (databaseTime !== undefined && Math.abs(databaseTime - now) > mostDifferenceMs) {
      return `the clock of this gateway shows ${toIso(now)}, but the clock of the database shows ${toIso(databaseTime)}`
    }
    if (!doubt) return undefined
    const distance = `${toDays(Math.abs(doubt.byMs))} ${doubt.byMs > 0 ? 'ahead of' : 'behind'}`
    const rest = `an administrator confirms the clock, or gateways have run with it for another ${toDays(doubt.remainingMs)}`
    return `the clock shows ${toIso(now)}, ${distance} the last confirmed time ${toIso(record.confirmed)}; nothing is removed until ${rest}`
  }

  async function reportHold(reason: string | undefined, { accepted, record }: ClockJudgement): Promise<void> {
    const was = held
    held = reason
    if (accepted) await note({ action: 'clock-accepted', clock: toIso(record.confirmed) })
    if (reason === undefined || was !== undefined) return
    log.warn({ reason }, 'retention is on hold')
    await note({ action: 'held', reason })
  }

  async function note(body: Readonly<Record<string, unknown>>): Promise<void> {
    await storage.audit.append({ principal: 'gateway', subject: 'retention', body })
  }

  type Pass = { before: number; days: number; behind: ClockRecord['behind']; signal: AbortSignal }

  async function removeBefore({ before: wanted, days, behind, signal }: Pass): Promise<boolean> {
    const kept = new Set(Object.keys(behind))
    const oldest = await storage.record.oldest([...kept])
    if (oldest === undefined || oldest >= wanted - slackMs) return false
    const before = Math.min(wanted, oldest + mostPerPassMs)
    const { removed, grown } = await findRemovable(storage.record, before, kept)
    if (grown === 0) return false
    await storage.audit.mark('checkpoint', { before, removed, days, entries: grown } satisfies CheckpointBody)
    crashPoint('a checkpoint is written, nothing is removed')
    if (!(await anchorDurably())) {
      log.warn({}, 'no old audit entries were removed: the checkpoint could not be anchored')
      return false
    }
    for (const [instance, { sequence }] of Object.entries(removed)) await remove(instance, sequence, signal)
    const floor = toIdFloor('call', before)
    while (!signal.aborted && (await storage.remove(storage.record.callRemoval(floor, before, perPiece))) > 0);
    while (!signal.aborted && (await storage.remove(storage.record.approvalRemoval(before, perPiece))) > 0);
    last = { at: toIso(clock.now()), before: toIso(before), entries: grown }
    log.info({ before: toIso(before), entries: grown }, 'retention removed old audit entries')
    return true
  }

  /**
   * Removes from the end backwards. After an interruption the remaining old entries still begin at the start of the
   * chain, and the newer entries begin at the checkpoint.
   */
  async function remove(instance: string, through: number, signal: AbortSignal): Promise<void> {
    const [first] = await storage.record.entries(instance, 0, 1)
    if (!first) return
    for (let end = through; end >= first.sequence && !signal.aborted; end -= perPiece) {
      await storage.remove(storage.record.removal(instance, Math.max(first.sequence, end - perPiece + 1), end))
      crashPoint('some old entries are removed')
    }
  }
}

function toDays(milliseconds: number): string {
  const days = milliseconds / dayMs
  const shown = days < 10 ? Math.round(days * 10) / 10 : Math.round(days)
  return countOf(shown, 'day')
}

type Removable = { readonly removed: CheckpointBody['removed']; readonly grown: number }

/** The new beginning of each chain, including chains that were shortened before, and the number of entries to remove. */
async function findRemovable(record: Storage['record'], before: number, kept: ReadonlySet<string>): Promise<Removable> {
  const source = createDatabaseSource(record, async () => undefined)
  const earlier = (await readCheckpoints(source, createFindings())).removed
  const removed: CheckpointBody['removed'] = {}
  let grown = 0
  for (let instance = await record.nextChain(''); instance !== undefined; instance = await record.nextChain(instance)) {
    const [first] = await record.entries(instance, 0, 1)
    if (!first) continue
    const marks = earlier.get(instance) ?? []
    const after = marks.find(({ sequence }) => sequence === first.sequence - 1)
    const cut = kept.has(instance) ? 0 : await findCut(record, instance, { first: first.sequence, before })
    const [last] = cut >= first.sequence ? await record.entries(instance, cut - 1, 1) : []
    if (last) {
      grown += last.sequence - first.sequence + 1
      // An earlier removal may have been interrupted: some entries before its checkpoint are gone already.
      const { sequence, hash } = marks.find((mark) => mark.sequence > last.sequence) ?? last
      removed[instance] = { sequence, hash, ...(after && { after }) }
    } else if (after) removed[instance] = after
  }
  return { removed, grown }
}

const perQuery = 10_000

/**
 * The last entry before the first one that is kept. Times in a chain can decrease when a clock is set, so all entries
 * are compared.
 */
async function findCut(
  record: Storage['record'],
  instance: string,
  { first, before }: { first: number; before: number },
): Promise<number> {
  const end = await record.firstSince(instance, before)
  for (let from = first; from < end; from += perQuery) {
    const through = Math.min(end - 1, from + perQuery - 1)
    const newer = await record.firstNotBefore({ instance, from, through, time: before })
    if (newer !== undefined) return newer - 1
  }
  return end - 1
}

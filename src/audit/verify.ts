import type { KeyObject } from 'node:crypto'
import { z } from 'zod'
import type { AuditReport, ChainMark } from '../contract/audit.ts'
import { toIdFloor } from '../lib/ids.ts'
import { countOf } from '../shared/words.ts'
import type { AuditTable } from '../storage/database.ts'
import { createCallCheck } from './call-check.ts'
import { type AnchoredHead, type ChainCheck, type CheckedRow, createChainCheck, toTime } from './chain-check.ts'
import { createChangeCheck } from './change-check.ts'
import { createRemovalCheck, readCheckpoints } from './checkpoints.ts'
import { createFindings } from './findings.ts'
import { createKnownAnchors, type OutsideAnchor, parseOrNothing } from './known-anchors.ts'

/** Where the record is read from: a database, or a file that was exported. */
export type RecordSource = {
  /** For people: "the database", "the export x.jsonl". */
  readonly name: string
  marks(kind: 'anchor' | 'checkpoint'): AsyncIterable<AuditTable>
  /** All entries; those of one chain in their order. */
  pages(): AsyncIterable<readonly CheckedRow[]>
  /** Chains that may still grow. */
  openInstances(): Promise<ReadonlySet<string>>
  /** Calls in the table of calls that the record does not know; a file has no such table. */
  unrecordedCalls?(): AsyncIterable<string>
  /** What the last restore of a backup left behind. */
  restored?(): Promise<string | undefined>
  /** An export ends somewhere: anchors from later say nothing about it. */
  span?(): Promise<{ readonly oldest: number; readonly newest: number }>
}

export type VerifyParts = {
  readonly source: RecordSource
  /** All that entries may have been chained with; none proves no content. */
  readonly keys: readonly KeyObject[]
  readonly outside: AsyncIterable<OutsideAnchor>
  /** Anchors stand somewhere that whoever changes the database may not reach. */
  readonly apart: boolean
  /** Milliseconds since 1970, by the clock of whoever verifies. */
  readonly now: number
  readonly signal: AbortSignal
}

/** Goes through the whole record page by page and says what it found, and what it cannot see. */
export async function verifyRecord({ source, keys, outside, apart, now, signal }: VerifyParts): Promise<AuditReport> {
  const findings = createFindings()
  const keyed = keys.length > 0
  const notices: string[] = []
  const span = await source.span?.()
  // Whoever can take the key away must not get a record without one accepted.
  if (!keyed && !span)
    findings.add({ kind: 'wrong-key', message: 'The key of the record is not there: nothing is proven' })
  const checkpoint = await readCheckpoints(source, findings)
  const anchors = createKnownAnchors(span)
  for await (const row of source.marks('anchor')) anchors.addInside(row, findings)
  for await (const line of outside) {
    signal.throwIfAborted()
    anchors.addOutside(line, keys, findings)
  }

  notices.push(...anchors.unreadable())
  const floorOf = (kind: string) => (checkpoint.before > 0 ? toIdFloor(kind, checkpoint.before + edgeMs) : '')
  const floor = floorOf('call')
  const calls = createCallCheck(findings, floor)
  const changes = createChangeCheck(findings, floorOf('change'))
  const removals = createRemovalCheck(checkpoint, now, findings)
  const chains = new Map<string, ChainCheck>()
  let entries = 0
  for await (const page of source.pages()) {
    signal.throwIfAborted()
    for (const row of page) {
      const chain = chains.get(row.instance) ?? begin(row.instance)
      chain.feed(row)
      calls.feed(row)
      changes.feed(row)
      removals.feed(row)
    }
    entries += page.length
  }

  const gone: string[] = []
  let afterAnchor = 0
  for (const [instance, chain] of chains) endChain(instance, chain)
  for (const [instance, head] of anchors.farthest()) if (!chains.has(instance)) missChain(instance, head)
  await nameRestore()
  const open = await source.openInstances()
  const { running } = calls.end(open)
  changes.end(open)
  if (running > 0)
    notices.push(`${countOf(running, 'call')} without an end yet: under way, or closed at the next start.`)
  if (source.unrecordedCalls) {
    for await (const call of source.unrecordedCalls()) {
      if (call < floor) continue
      signal.throwIfAborted()
      findings.add({
        kind: 'not-recorded',
        message: `The call ${call} is in the table of calls and not in the record`,
        call,
      })
    }
  }
  if (keyed && findings.count() > 1 && findings.list.length > 0 && chains.size > 0 && !anyProven()) {
    const message = 'Nothing in the record fits this key: is it the one that the record was written with?'
    findings.add({ kind: 'wrong-key', message })
  }
  return toReport()

  function begin(instance: string): ChainCheck {
    const removed = checkpoint.removed.get(instance) ?? []
    const unchainedUpTo = anchors.unchainedUpTo(instance)
    const chain = createChainCheck({ instance, keys, removed, anchored: anchors.of(instance), unchainedUpTo, findings })
    chains.set(instance, chain)
    return chain
  }

  function endChain(instance: string, chain: ChainCheck): void {
    const { last, unchained, begins } = chain.end()
    if (begins > 1 && source.span) notices.push(`The export begins at entry ${begins} of ${instance}.`)
    if (unchained > 0)
      notices.push(`${countOf(unchained, 'entry', 'entries')} of ${instance} are older than the chain and not proven.`)
    for (const head of anchors.of(instance)) if (head.sequence > last.sequence) missTail(instance, last, head)
    afterAnchor += Math.max(0, last.sequence - (anchors.outsideOf(instance)?.sequence ?? 0))
  }

  function missTail(instance: string, last: ChainMark, head: AnchoredHead): void {
    if (findRemoved(instance, head.sequence)) return
    const where = head.outside ? 'an anchor outside' : 'an anchor in the record'
    const message = `Entries ${last.sequence + 1} to ${head.sequence} of ${instance} are missing: ${where} of ${toTime(head.at)} names them`
    if (head.outside) gone.push(instance)
    findings.add({ kind: 'cut', message, instance, sequence: last.sequence + 1 })
  }

  function missChain(instance: string, head: AnchoredHead): void {
    const removed = findRemoved(instance, head.sequence)
    if (removed) {
      if (removed.sequence === head.sequence && removed.hash !== head.hash) {
        const message = `The end of ${instance}, which retention removed, is not the one that an anchor names`
        findings.add({ kind: 'anchor-differs', message, instance, sequence: head.sequence })
      }
      return
    }
    if (head.at < checkpoint.before) return // older than what retention keeps
    if (source.span) return void notices.push(`The export holds nothing of ${instance}.`)
    const where = head.outside ? 'an anchor outside' : 'an anchor in the record'
    const message = `All ${head.sequence} entries of ${instance} are missing: ${where} of ${toTime(head.at)} names them`
    if (head.outside) gone.push(instance)
    findings.add({ kind: 'chain-missing', message, instance })
  }

  function findRemoved(instance: string, sequence: number): ChainMark | undefined {
    return checkpoint.removed.get(instance)?.find((mark) => mark.sequence >= sequence)
  }

  async function nameRestore(): Promise<void> {
    const found = await source.restored?.()
    const restored = found && describeRestore(found)
    if (restored === undefined) {
      if (gone.length > 0)
        notices.push('An older backup that was put in place without `sallyport restore` looks the same.')
      return
    }
    if (gone.length === 0)
      return void notices.push(`This data was restored from a backup (${restored}); no anchored entry is missing.`)
    const message = `This data was restored from a backup (${restored}): what ${countOf(gone.length, 'chain')} had after it is gone`
    findings.add({ kind: 'restored', message })
  }

  function anyProven(): boolean {
    return [...chains.values()].some((chain) => chain.end().proven > 0)
  }

  function toReport(): AuditReport {
    const { inside, outside: outsideCount, last } = anchors.counts()
    return {
      clean: findings.count() === 0,
      keyed,
      entries,
      chains: chains.size,
      anchors: { inside, outside: outsideCount, ...(last > 0 && { last: toTime(last) }) },
      findings: [...findings.list],
      found: findings.count(),
      removals: [...checkpoint.removals],
      notices: [
        ...notices.slice(0, mostNotices),
        ...(notices.length > mostNotices ? [`… and ${notices.length - mostNotices} more.`] : []),
      ],
      checked: toChecked(inside, outsideCount),
      unseen: toUnseen(outsideCount, last),
    }
  }

  function toChecked(inside: number, outsideCount: number): string[] {
    const proven = keyed
      ? 'each is what the gateway wrote and builds on the one before it'
      : 'each names the one before it'
    return [
      `${countOf(entries, 'entry', 'entries')} in ${countOf(chains.size, 'chain')} of ${source.name}: whether none is missing in between, and ${proven}.`,
      `${countOf(inside, 'anchor')} in the record and ${outsideCount} outside: whether the chains reach as far as they say.`,
      'Whether every call that was begun has one end, and every change of the configuration one outcome.',
      ...(source.unrecordedCalls ? ['Whether every row in the table of calls is in the record.'] : []),
      ...(checkpoint.before > 0
        ? [`Whether retention removed only entries before ${toTime(checkpoint.before)}, and by a clock that was right.`]
        : []),
    ]
  }

  function toUnseen(outsideCount: number, last: number): string[] {
    const unseen: string[] = []
    if (!keyed)
      unseen.push(
        'Without the key no content is proven: whoever changes an entry can make up its hash and all after it.',
      )
    if (outsideCount === 0) {
      unseen.push('There is no anchor outside: whether the end of a chain, or a whole one, was cut off cannot be told.')
    } else {
      unseen.push(
        `${countOf(afterAnchor, 'entry', 'entries')} came after the last anchor outside (${toTime(last)}): if more had come and were cut off, it cannot be told.`,
      )
      if (!apart) {
        unseen.push(
          'The anchors stand in the data folder: whoever can change the database can cut them as well. Set audit.anchors.file or audit.anchors.webhook.',
        )
      }
    }
    if (keyed)
      unseen.push(
        'Whoever has both the key and the database can write another record, as far as no anchor is out of reach.',
      )
    if (source.span) unseen.push('An export says nothing of what was written after it was made.')
    return unseen
  }
}

const mostNotices = 50
/** Times and places do not fit to the millisecond. */
const edgeMs = 1000

const Restore = z.object({ createdAt: z.string(), restoredAt: z.string() })

function describeRestore(value: string): string {
  const { data } = Restore.safeParse(parseOrNothing(value))
  return data ? `of ${data.createdAt}, put back ${data.restoredAt}` : value.slice(0, 200)
}

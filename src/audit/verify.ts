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

/** The source of the audit entries: a database or an exported file. */
export type RecordSource = {
  /** The name that is shown to people: "the database", "the export x.jsonl". */
  readonly name: string
  marks(kind: 'anchor' | 'checkpoint'): AsyncIterable<AuditTable>
  /** All entries. Entries of one chain are in order. */
  pages(): AsyncIterable<readonly CheckedRow[]>
  /** Chains of running instances, which may still grow. */
  openInstances(): Promise<ReadonlySet<string>>
  /** Calls in the calls table that have no audit entry. A file has no such table. */
  unrecordedCalls?(): AsyncIterable<string>
  /** The note that the last restore of a backup left. */
  restored?(): Promise<string | undefined>
  /** The time span of an export. Anchors outside it are ignored. */
  span?(): Promise<{ readonly oldest: number; readonly newest: number }>
}

export type VerifyParts = {
  readonly source: RecordSource
  /** All keys that may have chained entries. Without a key no content is verified. */
  readonly keys: readonly KeyObject[]
  readonly outside: AsyncIterable<OutsideAnchor>
  /** Whether anchors are stored where an attacker with access to the database may not reach them. */
  readonly apart: boolean
  /** Milliseconds since 1970, from the clock of the verification. */
  readonly now: number
  readonly signal: AbortSignal
}

/** Verifies the whole audit page by page. Reports findings, and what the verification cannot detect. */
export async function verifyRecord({ source, keys, outside, apart, now, signal }: VerifyParts): Promise<AuditReport> {
  const findings = createFindings()
  const keyed = keys.length > 0
  const notices: string[] = []
  const span = await source.span?.()
  // A missing key is a finding, so that an attacker cannot avoid the check by deleting the key.
  if (!keyed && !span) findings.add({ kind: 'wrong-key', message: 'The audit key is missing: nothing can be verified' })
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
  await reportRestore()
  const open = await source.openInstances()
  const { running } = calls.end(open)
  changes.end(open)
  if (running > 0)
    notices.push(`${countOf(running, 'call')} without an outcome: still running, or closed at the next start.`)
  if (source.unrecordedCalls) {
    for await (const call of source.unrecordedCalls()) {
      if (call < floor) continue
      signal.throwIfAborted()
      findings.add({
        kind: 'not-recorded',
        message: `The call ${call} is in the calls table but not in the audit`,
        call,
      })
    }
  }
  if (keyed && findings.count() > 1 && findings.list.length > 0 && chains.size > 0 && !anyProven()) {
    const message = 'No entry matches this key. Check that it is the key that the audit was written with'
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
      notices.push(
        `${countOf(unchained, 'entry', 'entries')} of ${instance} are older than the chain and not verified.`,
      )
    for (const head of anchors.of(instance)) if (head.sequence > last.sequence) missTail(instance, last, head)
    afterAnchor += Math.max(0, last.sequence - (anchors.outsideOf(instance)?.sequence ?? 0))
  }

  function missTail(instance: string, last: ChainMark, head: AnchoredHead): void {
    if (findRemoved(instance, head.sequence)) return
    const where = head.outside ? 'an anchor outside the database' : 'an anchor in the database'
    const message = `Entries ${last.sequence + 1} to ${head.sequence} of ${instance} are missing: ${where} of ${toTime(head.at)} names them`
    if (head.outside) gone.push(instance)
    findings.add({ kind: 'cut', message, instance, sequence: last.sequence + 1 })
  }

  function missChain(instance: string, head: AnchoredHead): void {
    const removed = findRemoved(instance, head.sequence)
    if (removed) {
      if (removed.sequence === head.sequence && removed.hash !== head.hash) {
        const message = `The end of ${instance}, which retention removed, differs from the entry that an anchor names`
        findings.add({ kind: 'anchor-differs', message, instance, sequence: head.sequence })
      }
      return
    }
    if (head.at < checkpoint.before) return // old enough to be removed by retention
    if (source.span) return void notices.push(`The export has no entries of ${instance}.`)
    const where = head.outside ? 'an anchor outside the database' : 'an anchor in the database'
    const message = `All ${head.sequence} entries of ${instance} are missing: ${where} of ${toTime(head.at)} names them`
    if (head.outside) gone.push(instance)
    findings.add({ kind: 'chain-missing', message, instance })
  }

  function findRemoved(instance: string, sequence: number): ChainMark | undefined {
    return checkpoint.removed.get(instance)?.find((mark) => mark.sequence >= sequence)
  }

  async function reportRestore(): Promise<void> {
    const found = await source.restored?.()
    const restored = found && describeRestore(found)
    if (restored === undefined) {
      if (gone.length > 0)
        notices.push('Copying an older backup into place without `sallyport restore` has the same effect.')
      return
    }
    if (gone.length === 0)
      return void notices.push(`This data was restored from a backup (${restored}); no anchored entry is missing.`)
    const message = `This data was restored from a backup (${restored}): later entries of ${countOf(gone.length, 'chain')} are missing`
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
      ? 'each entry is unchanged and linked to the entry before it'
      : 'each entry is linked to the entry before it'
    return [
      `${countOf(entries, 'entry', 'entries')} in ${countOf(chains.size, 'chain')} of ${source.name}: whether no entry between the first and the last is missing, and whether ${proven}.`,
      `${countOf(inside, 'anchor')} in the database and ${outsideCount} outside: whether the chains contain every entry that the anchors name.`,
      'Whether every call and every change of the configuration has one outcome.',
      ...(source.unrecordedCalls ? ['Whether every row in the calls table is in the audit.'] : []),
      ...(checkpoint.before > 0
        ? [`Whether retention removed only entries before ${toTime(checkpoint.before)}, with a correct clock.`]
        : []),
    ]
  }

  function toUnseen(outsideCount: number, last: number): string[] {
    const unseen: string[] = []
    if (!keyed)
      unseen.push(
        'Without the key no content is proven: an attacker who changes an entry can also recompute the hashes after it.',
      )
    if (outsideCount === 0) {
      unseen.push(
        'There is no anchor outside the database: a removed end of a chain, or a removed chain, cannot be detected.',
      )
    } else {
      unseen.push(
        `${countOf(afterAnchor, 'entry', 'entries')} came after the last anchor outside the database (${toTime(last)}): if later entries were removed, that cannot be detected.`,
      )
      if (!apart) {
        unseen.push(
          'The anchors are in the data folder, where an attacker who can change the database can remove them as well. Set audit.anchors.file or audit.anchors.webhook.',
        )
      }
    }
    if (keyed)
      unseen.push(
        'An attacker with both the key and the database can rewrite all entries that no anchor elsewhere names.',
      )
    if (source.span) unseen.push('Entries that were written after the export are not checked.')
    return unseen
  }
}

const mostNotices = 50
/** Tolerance, because the times of ids and entries can differ by some milliseconds. */
const edgeMs = 1000

const Restore = z.object({ createdAt: z.string(), restoredAt: z.string() })

function describeRestore(value: string): string {
  const { data } = Restore.safeParse(parseOrNothing(value))
  return data ? `of ${data.createdAt}, restored ${data.restoredAt}` : value.slice(0, 200)
}

import type { KeyObject } from 'node:crypto'
import { AnchorBody, type ChainMark, type ExportedEntry } from '../contract/audit.ts'
import { parseJson } from '../lib/json.ts'
import { linkEntry } from '../storage/chain.ts'
import type { AuditTable } from '../storage/database.ts'
import type { AnchoredHead } from './chain-check.ts'
import type { Findings } from './findings.ts'

/** One line of an anchor file. `anchor` is undefined if the line cannot be parsed. */
export type OutsideAnchor = { readonly file: string; readonly line: number; readonly anchor: ExportedEntry | undefined }

export type KnownAnchors = {
  addInside(row: AuditTable, findings: Findings): void
  addOutside(line: OutsideAnchor, keys: readonly KeyObject[], findings: Findings): void
  /** Messages about lines that are not anchors, for example after a crash during a write. */
  unreadable(): readonly string[]
  of(instance: string): AnchoredHead[]
  outsideOf(instance: string): AnchoredHead | undefined
  farthest(): Map<string, AnchoredHead>
  /** Entries up to this sequence were written before entries had hashes. */
  unchainedUpTo(instance: string): number
  counts(): { inside: number; outside: number; last: number }
}

/** Keeps only the last head of each chain, because the links verify the entries before it. */
export function createKnownAnchors(span: { oldest: number; newest: number } | undefined): KnownAnchors {
  const inside = new Map<string, AnchoredHead>()
  const outside = new Map<string, AnchoredHead>()
  const unchained = new Map<string, number>()
  /**
   * Instances that wrote anchors or had a hash in an anchor. If a head of such an instance has no hash, the hash was
   * deleted.
   */
  const chained = new Set<string>()
  const unreadable: string[] = []
  const counts = { inside: 0, outside: 0, last: 0 }

  return {
    addInside(row, findings) {
      counts.inside++
      chained.add(row.instance)
      const body = parseBody(row, AnchorBody, findings)
      for (const [instance, { sequence, hash }] of Object.entries(body?.heads ?? {})) {
        if (hash !== '') chained.add(instance)
        else unchained.set(instance, Math.max(sequence, unchained.get(instance) ?? 0))
        keepFarthest(inside, instance, { sequence, hash, at: row.at, outside: false })
      }
    },
    addOutside({ file, line, anchor }, keys, findings) {
      if (!anchor) return void unreadable.push(`Line ${line} of ${file} is not a complete anchor.`)
      if (keys.length > 0 && !keys.some((key) => linkEntry(key, anchor.previous ?? '', anchor) === anchor.hash)) {
        const message = `Line ${line} of ${file} is not an anchor that this gateway wrote`
        return findings.add({ kind: 'anchor-forged', message, instance: anchor.instance, sequence: anchor.sequence })
      }
      counts.outside++
      counts.last = Math.max(counts.last, anchor.at)
      if (span && (anchor.at > span.newest || anchor.at < span.oldest)) return
      const body = parseBody({ ...anchor }, AnchorBody, findings)
      const own: ChainMark = { sequence: anchor.sequence, hash: anchor.hash }
      for (const [instance, mark] of [...Object.entries(body?.heads ?? {}), [anchor.instance, own] as const]) {
        if (mark.hash !== '') chained.add(instance)
        keepFarthest(outside, instance, { sequence: mark.sequence, hash: mark.hash, at: anchor.at, outside: true })
      }
    },
    of: (instance) => [inside.get(instance), outside.get(instance)].filter((head) => head !== undefined),
    outsideOf: (instance) => outside.get(instance),
    farthest() {
      const farthest = new Map(inside)
      for (const [instance, head] of outside) keepFarthest(farthest, instance, head)
      return farthest
    },
    unchainedUpTo: (instance) => (chained.has(instance) ? 0 : (unchained.get(instance) ?? 0)),
    unreadable: () => unreadable,
    counts: () => counts,
  }
}

function keepFarthest<Mark extends ChainMark>(marks: Map<string, Mark>, instance: string, mark: Mark): void {
  const known = marks.get(instance)
  if (known === undefined || mark.sequence > known.sequence) marks.set(instance, mark)
}

export function parseBody<Body>(
  row: Pick<AuditTable, 'instance' | 'sequence' | 'body'>,
  shape: { safeParse(value: unknown): { data?: Body } },
  findings: Findings,
): Body | undefined {
  const body = shape.safeParse(parseOrNothing(row.body)).data
  const { instance, sequence } = row
  if (body === undefined) {
    findings.add({ kind: 'unreadable', message: `Entry ${instance}:${sequence} cannot be read`, instance, sequence })
  }
  return body
}

export function parseOrNothing(text: string): unknown {
  try {
    return parseJson(text)
  } catch {
    return undefined
  }
}

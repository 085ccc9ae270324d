import type { KeyObject } from 'node:crypto'
import type { ChainMark } from '../contract/audit.ts'
import { linkEntry } from '../storage/chain.ts'
import type { AuditTable } from '../storage/database.ts'
import type { NewEntry } from '../storage/unit.ts'
import type { Findings } from './findings.ts'

/** An audit entry to check. Only entries of an export contain the hash of the previous entry. */
export type CheckedRow = AuditTable & { readonly previous?: string | null }

export type ChainCheckParts = {
  readonly instance: string
  /**
   * The keys that may have chained the entries. Without a key only sequence numbers and links are compared, and no
   * content is verified.
   */
  readonly keys: readonly KeyObject[]
  /** The entries up to which retention removed this chain, from checkpoints. */
  readonly removed: readonly ChainMark[]
  /** The heads of this chain that anchors name: the last one from the database, and the last one from outside. */
  readonly anchored: readonly AnchoredHead[]
  /** Entries up to this sequence were written before entries had hashes. */
  readonly unchainedUpTo: number
  readonly findings: Findings
}

/** The head of a chain in an anchor, and the time of the anchor. */
export type AnchoredHead = ChainMark & { readonly at: number; readonly outside: boolean }

export type ChainCheck = {
  feed(row: CheckedRow): void
  /** Call it after the last entry. Entries that are missing at the end are reported by the caller. */
  end(): ChainEnd
}

export type ChainEnd = {
  readonly last: ChainMark
  readonly begins: number
  readonly unchained: number
  readonly proven: number
}

/** Checks one chain entry by entry. */
export function createChainCheck(parts: ChainCheckParts): ChainCheck {
  const { instance, keys, removed, anchored, unchainedUpTo, findings } = parts
  let last: ChainMark = { sequence: 0, hash: '' }
  /** The hash of the entry before the next one; undefined if unknown. */
  let previous: string | undefined = ''
  let begins = 0
  let unchained = 0
  let fits: KeyObject | undefined
  let proven = 0

  return { feed, end: () => ({ last, begins, unchained, proven }) }

  function feed(row: CheckedRow): void {
    const { sequence, hash } = row
    if (begins > 0 && sequence <= last.sequence) {
      findings.add({
        kind: 'order',
        message: `Entry ${name(sequence)} comes after entry ${last.sequence}`,
        sequence,
        instance,
      })
      return
    }
    if (begins === 0) begin(row)
    else if (sequence !== last.sequence + 1) gap(row, last.sequence + 1)
    if (hash === '') miss(row)
    else prove(row)
    for (const head of anchored) if (head.sequence === sequence) compare(head, hash)
    if (removed.some((mark) => mark.sequence === sequence && mark.hash !== hash)) {
      const message = `Entry ${name(sequence)} differs from the entry that a checkpoint names`
      findings.add({ kind: 'anchor-differs', message, instance, sequence })
    }
    last = { sequence, hash }
    previous = hash === '' ? findLost(row) : hash
  }

  function miss({ sequence }: CheckedRow): void {
    if (sequence <= unchainedUpTo) return void unchained++
    const message = `The hash of entry ${name(sequence)} is missing`
    findings.add({ kind: 'unchained', message, instance, sequence })
  }

  /** Computes the missing hash of an entry, so that the entries after it can still be verified. */
  function findLost(row: CheckedRow): string | undefined {
    if (row.sequence <= unchainedUpTo) return ''
    const base = row.previous ?? previous
    const key = fits ?? (keys.length === 1 ? keys[0] : undefined)
    return base === undefined || key === undefined ? undefined : linkEntry(key, base, toLinked(row))
  }

  function begin(row: CheckedRow): void {
    begins = row.sequence
    if (begins === 1) return
    if (typeof row.previous === 'string') {
      previous = row.previous
      return
    }
    gap(row, 1)
  }

  /** Reports missing entries, unless a checkpoint names the removed entries exactly up to here. */
  function gap(row: CheckedRow, from: number): void {
    const to = row.sequence - 1
    const mark = removed.find(({ sequence }) => sequence === to)
    if (mark) {
      previous = mark.hash
      return
    }
    const which = from === to ? `Entry ${name(from)} is` : `Entries ${from} to ${to} of ${instance} are`
    findings.add({ kind: 'missing', message: `${which} missing`, instance, sequence: from })
    previous = row.previous ?? undefined
  }

  function prove(row: CheckedRow): void {
    const base = row.previous ?? previous
    if (base === undefined) return
    if (previous !== undefined && base !== previous) {
      const message = `Entry ${name(row.sequence)} is not linked to the entry before it`
      findings.add({ kind: 'altered', message, instance, sequence: row.sequence })
      return
    }
    if (keys.length === 0) return
    // An instance uses one key for all its entries, so the first key that matches is used for the whole chain.
    const fit = (fits ? [fits] : keys).find((key) => linkEntry(key, base, toLinked(row)) === row.hash)
    fits ??= fit
    if (fit) return void proven++
    const message = `Entry ${name(row.sequence)} was changed after the gateway wrote it`
    findings.add({ kind: 'altered', message, instance, sequence: row.sequence })
  }

  function compare(head: AnchoredHead, hash: string): void {
    if (head.hash === hash) return
    const where = head.outside ? 'an anchor outside the database' : 'an anchor in the database'
    const message = `Entry ${name(head.sequence)} differs from the entry that ${where} names (${toTime(head.at)})`
    findings.add({ kind: 'anchor-differs', message, instance, sequence: head.sequence })
  }

  function name(sequence: number): string {
    return `${instance}:${sequence}`
  }
}

/** The cast is safe for hashing: an unknown kind is hashed like a known one. */
export function toLinked(row: AuditTable): NewEntry & { instance: string; sequence: number } {
  return row as NewEntry & { instance: string; sequence: number }
}

export function toTime(milliseconds: number): string {
  return Number.isFinite(milliseconds) ? new Date(milliseconds).toISOString() : 'unknown time'
}

import type { KeyObject } from 'node:crypto'
import type { ChainMark } from '../contract/audit.ts'
import { linkEntry } from '../storage/chain.ts'
import type { AuditTable } from '../storage/database.ts'
import type { NewEntry } from '../storage/unit.ts'
import type { Findings } from './findings.ts'

/** An entry on its way through the check; an export says itself what came before. */
export type CheckedRow = AuditTable & { readonly previous?: string | null }

export type ChainCheckParts = {
  readonly instance: string
  /** One of them chained it. Without any only places and links are compared, and no content is proven. */
  readonly keys: readonly KeyObject[]
  /** Up to where retention has removed this chain, as checkpoints say. */
  readonly removed: readonly ChainMark[]
  /** Heads that anchors say this chain had; the farthest inside and outside. */
  readonly anchored: readonly AnchoredHead[]
  /** Entries up to here are older than the chain and have no hash. */
  readonly unchainedUpTo: number
  readonly findings: Findings
}

/** A chain's head as an anchor saw it, and when. */
export type AnchoredHead = ChainMark & { readonly at: number; readonly outside: boolean }

export type ChainCheck = {
  feed(row: CheckedRow): void
  /** The last entry is behind us: what is missing at the end is missed now. */
  end(): ChainEnd
}

export type ChainEnd = {
  readonly last: ChainMark
  readonly begins: number
  readonly unchained: number
  readonly proven: number
}

/** Follows one chain entry by entry. */
export function createChainCheck(parts: ChainCheckParts): ChainCheck {
  const { instance, keys, removed, anchored, unchainedUpTo, findings } = parts
  let last: ChainMark = { sequence: 0, hash: '' }
  /** The hash that the next entry must build on; undefined when nobody knows it. */
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
        message: `Entry ${name(sequence)} stands behind entry ${last.sequence}`,
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
      const message = `Entry ${name(sequence)} is not the one that a checkpoint names`
      findings.add({ kind: 'anchor-differs', message, instance, sequence })
    }
    last = { sequence, hash }
    previous = hash === '' ? findLost(row) : hash
  }

  function miss({ sequence }: CheckedRow): void {
    if (sequence <= unchainedUpTo) return void unchained++
    const message = `Entry ${name(sequence)} has no hash, and should`
    findings.add({ kind: 'unchained', message, instance, sequence })
  }

  /** The hash that an entry without one had, so that the entries after it are proven all the same. */
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

  /** What a checkpoint names ends exactly here, and the hash there is known: then nothing is missed. */
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
      const message = `Entry ${name(row.sequence)} does not build on the one before it`
      findings.add({ kind: 'altered', message, instance, sequence: row.sequence })
      return
    }
    if (keys.length === 0) return
    // The first that fits is the one: an instance has one key for all its life.
    const fit = (fits ? [fits] : keys).find((key) => linkEntry(key, base, toLinked(row)) === row.hash)
    fits ??= fit
    if (fit) return void proven++
    const message = `Entry ${name(row.sequence)} is not what the gateway wrote there`
    findings.add({ kind: 'altered', message, instance, sequence: row.sequence })
  }

  function compare(head: AnchoredHead, hash: string): void {
    if (head.hash === hash) return
    const where = head.outside ? 'an anchor outside' : 'an anchor in the record'
    const message = `Entry ${name(head.sequence)} is not the one that ${where} names (${toTime(head.at)})`
    findings.add({ kind: 'anchor-differs', message, instance, sequence: head.sequence })
  }

  function name(sequence: number): string {
    return `${instance}:${sequence}`
  }
}

/** Trusted as far as a hash goes: an unknown kind is hashed like a known one. */
export function toLinked(row: AuditTable): NewEntry & { instance: string; sequence: number } {
  return row as NewEntry & { instance: string; sequence: number }
}

export function toTime(milliseconds: number): string {
  return Number.isFinite(milliseconds) ? new Date(milliseconds).toISOString() : 'unknown time'
}

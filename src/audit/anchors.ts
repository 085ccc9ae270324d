import { join } from 'node:path'
import type { AnchorBody } from '../contract/audit.ts'
import type { AuditSettings } from '../contract/config.ts'
import { toGatewayError } from '../contract/errors.ts'
import type { Clock } from '../lib/clock.ts'
import { crashPoint } from '../lib/crash-point.ts'
import { appendLine } from '../lib/durable-file.ts'
import type { Log } from '../lib/log.ts'
import type { Storage } from '../storage/storage.ts'
import { createDelivery, type Delivery, type DeliveryStatus } from './delivery.ts'
import { toLine } from './lines.ts'

export type Anchors = {
  /** Writes an anchor now, if there are new entries, and sends it to the configured files and webhook. */
  anchor(): Promise<void>
  /** Like `anchor`. Returns whether the anchor files contain the anchor. */
  anchorDurably(): Promise<boolean>
  status(): DeliveryStatus[]
  close(): Promise<void>
}

export type AnchorParts = {
  readonly storage: Pick<Storage, 'audit' | 'record' | 'instance'>
  readonly folder: string
  settings(): AuditSettings['anchors']
  /** Posts a text as JSON. Throws unless the receiver accepted it. */
  post(url: string, body: string, signal: AbortSignal): Promise<void>
  readonly clock: Clock
  readonly log: Log
}

/**
 * The number of chains of stopped instances that an anchor names. Older chains are named by earlier anchors, which
 * these chains contain.
 */
const newestChains = 64
const checkEvery = 5000
const postMs = 15_000
/** How long a stopping gateway waits for files and webhooks that do not answer. */
const closeMs = 2000

/** Regularly writes the heads of all chains to an anchor entry, and sends it to files and a webhook outside the database. */
export function createAnchors({ storage, folder, settings, post, clock, log }: AnchorParts): Anchors {
  const known = new Map<string, number>()
  const deliveries = new Map<string, Delivery>()
  let lastAt = Number.NEGATIVE_INFINITY
  let lastSequence = 0
  let working: Promise<void> = Promise.resolve()
  let cancelCheck = () => {}
  let closed = false
  scheduleCheck()

  return {
    anchor,
    async anchorDurably() {
      await anchor()
      const files = targets().filter(({ kind }) => kind === 'file')
      const settled = await Promise.all(files.map(({ key }) => deliveries.get(key)?.settled() ?? true))
      return settled.every(Boolean)
    },
    status: () => [...deliveries.values()].map((delivery) => delivery.status()),
    async close() {
      cancelCheck()
      await anchor()
      closed = true
      const { promise, resolve } = Promise.withResolvers<void>()
      const cancel = clock.after(closeMs, resolve)
      await Promise.race([Promise.all([...deliveries.values()].map((delivery) => delivery.settled())), promise])
      cancel()
      for (const delivery of deliveries.values()) delivery.close()
    },
  }

  function scheduleCheck(): void {
    cancelCheck = clock.after(Math.min(checkEvery, settings().every), async () => {
      await anchorIfDue()
      if (!closed) scheduleCheck()
    })
  }

  async function anchorIfDue(): Promise<void> {
    try {
      const { every, entries } = settings()
      const head = await storage.record.head(storage.instance)
      const grown = (head?.sequence ?? 0) - lastSequence
      if (clock.now() - lastAt >= every || grown >= entries) await anchor()
    } catch (error) {
      report(error)
    }
  }

  /** Runs one at a time, because each anchor names only the chains that changed since the one before. */
  function anchor(): Promise<void> {
    working = working.then(write).catch(report)
    return working
  }

  async function write(): Promise<void> {
    if (closed) return
    const heads: AnchorBody['heads'] = {}
    for (const { instance, sequence, hash } of await storage.record.heads(newestChains)) {
      if (known.get(instance) !== sequence) heads[instance] = { sequence, hash }
    }
    lastAt = clock.now()
    if (Object.keys(heads).length === 0 && lastSequence > 0) return
    const body: AnchorBody = { heads }
    const { row, previous } = await storage.audit.mark('anchor', body)
    crashPoint('an anchor is written, not delivered')
    for (const [instance, { sequence }] of Object.entries(heads)) known.set(instance, sequence)
    known.set(storage.instance, row.sequence)
    lastSequence = row.sequence
    deliver(toLine(row, previous))
  }

  function deliver(line: string): void {
    const wanted = targets()
    for (const [key, delivery] of deliveries) {
      if (wanted.some((target) => target.key === key)) continue
      delivery.close()
      deliveries.delete(key)
    }
    for (const target of wanted) {
      const delivery = deliveries.get(target.key) ?? createDelivery({ ...target, clock, log })
      deliveries.set(target.key, delivery)
      delivery.send(line)
    }
  }

  function targets(): Target[] {
    const { file, webhook } = settings()
    const files = [toAnchorFile(folder), ...(file === undefined ? [] : [file])]
    return [
      ...files.map((key): Target => ({ kind: 'file', key, target: key, deliver: (line) => appendLine(key, line) })),
      ...(webhook === undefined ? [] : [toWebhook(webhook)]),
    ]
  }

  function toWebhook(url: string): Target {
    const deliver: Target['deliver'] = (line, signal) =>
      post(url, line.trimEnd(), AbortSignal.any([signal, AbortSignal.timeout(postMs)]))
    return { kind: 'webhook', key: url, target: toShown(url), deliver }
  }

  function report(error: unknown): void {
    log.error({ reason: toGatewayError(error).message }, 'could not write an anchor of the audit')
  }
}

type Target = {
  readonly kind: 'file' | 'webhook'
  readonly key: string
  /** The name that is shown to people. */
  readonly target: string
  deliver(line: string, signal: AbortSignal): Promise<void>
}

export function toAnchorFile(folder: string): string {
  return join(folder, 'anchors.jsonl')
}

/** Webhook URLs often contain a secret in their path or query, so only the origin is shown. */
function toShown(url: string): string {
  return new URL(url).origin
}

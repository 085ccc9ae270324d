import type { AuditReport } from '../contract/audit.ts'
import type { AuditSettings } from '../contract/config.ts'
import { toGatewayError } from '../contract/errors.ts'
import type { Clock } from '../lib/clock.ts'
import type { Log } from '../lib/log.ts'
import { onAbort } from '../lib/signals.ts'
import { toChainKey } from '../storage/chain.ts'
import type { Storage } from '../storage/storage.ts'
import { type AnchorParts, createAnchors, toAnchorFile } from './anchors.ts'
import { createDatabaseSource } from './database-source.ts'
import type { DeliveryStatus } from './delivery.ts'
import { type ExportQuery, exportRecord } from './export.ts'
import { readAnchors } from './lines.ts'
import { createRetention, type Retention } from './retention.ts'
import { verifyRecord } from './verify.ts'

export type { DeliveryStatus } from './delivery.ts'
export type { ExportQuery } from './export.ts'
export { type StoppedRecord, verifyFile, verifyStopped } from './offline.ts'
export { toAuditSettings } from './settings.ts'

/** Makes the audit verifiable: writes anchors, verifies, exports, and removes old entries. */
export type Audit = {
  /** Verifies the whole audit. Concurrent callers share one run. */
  verify(signal: AbortSignal): Promise<AuditReport>
  /** The entries as text, in pieces. */
  export(query: ExportQuery, signal: AbortSignal): AsyncIterable<string>
  anchors(): DeliveryStatus[]
  retention(): ReturnType<Retention['status']>
  /** An administrator confirms the current time, so that retention trusts the clock of this gateway. */
  confirmClock: Retention['confirmClock']
  /** Writes an anchor now. */
  anchor(): Promise<void>
  close(): Promise<void>
}

export type AuditParts = {
  readonly storage: Pick<
    Storage,
    'audit' | 'record' | 'remove' | 'reclaim' | 'instance' | 'memory' | 'databaseTime' | 'flush'
  >
  /** The current key and the keys before it. */
  readonly keys: readonly Buffer[]
  readonly folder: string
  settings(): AuditSettings
  post: AnchorParts['post']
  readonly clock: Clock
  readonly log: Log
}

const retainEvery = 3_600_000

export function createAudit({ storage, keys, folder, settings, post, clock, log }: AuditParts): Audit {
  const secrets = keys.map(toChainKey)
  const ending = new AbortController()
  const anchors = createAnchors({ storage, folder, settings: () => settings().anchors, post, clock, log })
  const retention = createRetention({ storage, anchorDurably: anchors.anchorDurably, clock, log })
  let verifying: Promise<AuditReport> | undefined
  let retaining: Promise<void> | undefined
  /** Separate from `retaining`, so that a verification does not wait for it. */
  let reclaiming: Promise<void> | undefined
  let cancelRetain = () => {}
  void anchors.anchor().then(retain) // the first anchor names the chains of earlier instances

  return {
    verify(signal) {
      // Uses the gateway's own signal: other callers may still wait when the first caller cancels.
      verifying ??= verify(ending.signal).finally(() => {
        verifying = undefined
      })
      return unless(signal, verifying)
    },
    async *export(query, signal) {
      await storage.flush()
      yield* exportRecord(storage.record, query, AbortSignal.any([signal, ending.signal]))
    },
    anchors: anchors.status,
    retention: () => retention.status(settings().retention),
    async confirmClock(principal, time) {
      await retaining
      await retention.confirmClock(principal, time)
      cancelRetain()
      retain()
    },
    anchor: anchors.anchor,
    async close() {
      cancelRetain()
      ending.abort()
      await Promise.allSettled([verifying, retaining])
      await reclaiming
      await anchors.close()
    },
  }

  async function verify(signal: AbortSignal): Promise<AuditReport> {
    await retaining // a removal in progress would look like missing entries
    await storage.flush()
    const { file } = settings().anchors
    return verifyRecord({
      source: createDatabaseSource(storage.record, () => storage.memory.get('restored')),
      keys: secrets,
      outside: readAnchors([toAnchorFile(folder), ...(file === undefined ? [] : [file])]),
      apart: file !== undefined || settings().anchors.webhook !== undefined,
      now: clock.now(),
      signal,
    })
  }

  function retain(): void {
    if (ending.signal.aborted) return
    cancelRetain = clock.after(retainEvery, retain)
    if (verifying) return
    retaining ??= retention
      .apply(settings().retention, ending.signal)
      .then((removed) => {
        if (removed) reclaim()
      })
      .catch((error: unknown) => log.error({ reason: toGatewayError(error).message }, 'retention failed'))
      .finally(() => {
        retaining = undefined
      })
  }

  function reclaim(): void {
    reclaiming ??= storage
      .reclaim(ending.signal)
      .catch((error: unknown) => log.warn({ reason: toGatewayError(error).message }, 'the database was not compacted'))
      .finally(() => {
        reclaiming = undefined
      })
  }
}

/** Resolves with the result, or rejects with the signal's reason if the signal aborts first. */
async function unless<Result>(signal: AbortSignal, work: Promise<Result>): Promise<Result> {
  signal.throwIfAborted()
  const { promise, reject } = Promise.withResolvers<never>()
  const unlink = onAbort(signal, () => reject(signal.reason))
  try {
    return await Promise.race([work, promise])
  } finally {
    unlink()
  }
}

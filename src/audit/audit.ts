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

/** The record that can be proven: anchors it, checks it, copies it, and lets go of what is old. */
export type Audit = {
  /** Goes through the whole record; whoever asks while it does gets the same report. */
  verify(signal: AbortSignal): Promise<AuditReport>
  /** The record piece by piece, as text. */
  export(query: ExportQuery, signal: AbortSignal): AsyncIterable<string>
  anchors(): DeliveryStatus[]
  retention(): ReturnType<Retention['status']>
  /** An administrator says what time it is, so that retention believes the clock of this gateway. */
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
  /** The one in use, and those before it. */
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
  /** Apart from retention: whoever verifies need not wait for it. */
  let reclaiming: Promise<void> | undefined
  let cancelRetain = () => {}
  void anchors.anchor().then(retain) // links what earlier instances wrote

  return {
    verify(signal) {
      // Whoever came first may go: the others still wait for it.
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
    await retaining // its checkpoint comes before what it removes: half of it would look like theft
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

/** The result, or the signal's reason if that comes first. */
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

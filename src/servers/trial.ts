import type { ConnectionSpec } from '../config/config.ts'
import { GatewayError, toGatewayError } from '../contract/errors.ts'
import type { ServerDefinition } from '../contract/server.ts'
import type { Clock } from '../lib/clock.ts'
import type { Masking } from '../masking/masking.ts'
import type { Implementation, ServerFacts } from '../wire/codec.ts'
import { toFirstTimeout } from './connection.ts'
import type { WorkingFolders } from './folders.ts'
import type { EgressRules } from './http/egress.ts'
import type { LinkParts } from './link.ts'
import { type ListLimits, listKinds, noLists, type RawLists, readLists } from './listing.ts'
import { createServerLogs } from './logs.ts'
import { negotiate } from './negotiate.ts'
import type { ChildRecords } from './transports/stdio.ts'

/** A definition to try, with the origins and trust of its scope. */
export type Trial = Pick<ConnectionSpec, 'name' | 'definition' | 'origins' | 'trusted'>

export type TrialOutcome =
  | { readonly kind: 'works'; readonly facts: ServerFacts; readonly lists: RawLists }
  /** `output`: the last lines that the program wrote to standard error. */
  | { readonly kind: 'failed'; readonly error: GatewayError; readonly output: readonly string[] }

export type TrialParts = {
  readonly client: Implementation
  readonly instance: string
  readonly clock: Clock
  readonly children: ChildRecords
  readonly folders: WorkingFolders
  readonly masking: Masking
  readonly proofTimeoutMs: number
  readonly maxMessageBytes: number
  readonly listLimits: ListLimits
  readonly egress: EgressRules
  /** Fills in `${NAME}`; throws `variable-missing`. */
  resolve(): ServerDefinition
}

/** Connects to a definition without saving it, reads its lists and disconnects. */
export async function tryDefinition(wanted: Trial, parts: TrialParts, signal: AbortSignal): Promise<TrialOutcome> {
  const logs = createServerLogs(16 * 1024, parts.masking)
  const folder = await parts.folders.forTrial()
  try {
    const lost = Promise.withResolvers<never>()
    lost.promise.catch(() => {})
    const linkParts: LinkParts = {
      ...parts,
      connection: 'trial',
      definition: parts.resolve(),
      logs,
      workingFolder: folder.path,
      trusted: wanted.trusted,
      onSecretFound() {},
      onListChanged() {},
      onResourceUpdated() {},
      onRenewed() {},
      onAmbiguous() {},
      onClose: lost.reject,
    }
    const timeoutMs = toFirstTimeout(linkParts.definition)
    const link = await negotiate(linkParts, { signal, timeoutMs, remembered: undefined })
    try {
      const limits = { signal, clock: parts.clock, timeoutMs: wanted.definition.timeout.connect }
      const reading = readLists(link, { kinds: listKinds, known: noLists }, parts.listLimits, limits)
      return { kind: 'works', facts: link.facts, lists: await Promise.race([reading, lost.promise]) }
    } finally {
      await link.close()
    }
  } catch (error) {
    return { kind: 'failed', error: toMasked(error, parts.masking), output: logs.lastLines() }
  } finally {
    await folder.remove()
  }
}

/** The error text may contain the address or command, and with it the secrets that were filled in. */
function toMasked(error: unknown, masking: Masking): GatewayError {
  const { code, message, details } = toGatewayError(error)
  return new GatewayError(code, masking.text(message), masking.value(details), { cause: error })
}

import { type GatewayError, toGatewayError } from '../contract/errors.ts'
import type { Clock } from '../lib/clock.ts'
import type { ListKind } from './listing.ts'

export type RefresherParts = {
  readonly clock: Clock
  readonly pauseMs: number
  readonly signal: AbortSignal
  reread(kinds: readonly ListKind[]): Promise<void>
  /** The lists could not be read again: the known ones stay. */
  onFailure(error: GatewayError): void
}

/** Merges changes: the first starts a refresh, and all changes until `pauseMs` after it share the next one. */
export function createRefresher(parts: RefresherParts): (kinds: readonly ListKind[]) => void {
  let refreshing = false
  let outdated = new Set<ListKind>()

  return function refresh(kinds) {
    for (const kind of kinds) outdated.add(kind)
    if (refreshing || parts.signal.aborted) return
    refreshing = true
    const wanted = [...outdated]
    outdated = new Set()
    parts
      .reread(wanted)
      .catch((error: unknown) => parts.onFailure(toGatewayError(error)))
      .finally(() =>
        parts.clock.after(parts.pauseMs, () => {
          refreshing = false
          if (outdated.size > 0) refresh([])
        }),
      )
  }
}

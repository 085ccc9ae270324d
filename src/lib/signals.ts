import { GatewayError, type Reach } from '../contract/errors.ts'

/**
 * Calls the listener when the signal aborts, or at once if it has aborted. The returned function removes the listener:
 * otherwise a long-lived signal would keep the listener's data in memory.
 */
export function onAbort(signal: AbortSignal, listener: () => void): () => void {
  if (signal.aborted) {
    listener()
    return unlinked
  }
  signal.addEventListener('abort', listener, { once: true })
  return () => signal.removeEventListener('abort', listener)
}

function unlinked(): void {}

/** The error for work whose signal was aborted: the signal's reason if it is a `GatewayError`, else `call-cancelled`. */
export function toCancellation({ reason }: AbortSignal, reach: Reach): GatewayError {
  if (reason instanceof GatewayError) return reason.withReach(reach)
  return new GatewayError('call-cancelled', 'The caller cancelled the call', {}, { reach })
}

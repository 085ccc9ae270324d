import { GatewayError, type Reach } from '../contract/errors.ts'

/**
 * Calls the listener when the signal aborts, or at once if it has. The returned function takes the listener off again:
 * a signal that lives longer than the work must not keep what the work needed.
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

/** The error of work whose signal was aborted: the reason of the signal if it is one of ours, else `call-cancelled`. */
export function toCancellation({ reason }: AbortSignal, reach: Reach): GatewayError {
  if (reason instanceof GatewayError) return reason.withReach(reach)
  return new GatewayError('call-cancelled', 'The caller cancelled', {}, { reach })
}

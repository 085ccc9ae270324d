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

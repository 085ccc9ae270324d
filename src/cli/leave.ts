const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** Whoever is asked from outside to end ends in order; the function that comes back stops minding signals. */
export function leaveOnSignal(leaving: AbortController): () => void {
  const leave = () => leaving.abort()
  for (const signal of signals) process.on(signal, leave)
  return () => {
    for (const signal of signals) process.off(signal, leave)
  }
}

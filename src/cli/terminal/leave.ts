import { exit } from './exit.ts'
import { sameSignal } from './stop.ts'

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/**
 * Aborts `leaving` at the first signal; a second signal exits at once. The returned function removes the handlers, unless
 * a signal was received: a launcher may pass the same Ctrl+C again, which must not interrupt the final output.
 */
export function leaveOnSignal(leaving: AbortController): () => void {
  let askedAt: number | undefined
  const leave = () => {
    const now = performance.now()
    if (askedAt !== undefined && now - askedAt > sameSignal) process.exit(exit.interrupted)
    if (askedAt !== undefined) return
    askedAt = now
    // A normal exit would first remove the handlers, and a second copy of the same Ctrl+C would then kill the process.
    process.once('beforeExit', () => process.exit())
    leaving.abort()
  }
  for (const signal of signals) process.on(signal, leave)
  return () => {
    if (askedAt === undefined) for (const signal of signals) process.off(signal, leave)
  }
}

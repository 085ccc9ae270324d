import { exit } from './exit.ts'
import { sameSignal } from './stop.ts'

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/**
 * Ends in order when asked from outside; a second signal ends at once. The function that comes back stops listening,
 * unless a signal has come: what the command prints then must not be cut by the same Ctrl+C from a launcher.
 */
export function leaveOnSignal(leaving: AbortController): () => void {
  let askedAt: number | undefined
  const leave = () => {
    const now = performance.now()
    if (askedAt !== undefined && now - askedAt > sameSignal) process.exit(exit.interrupted)
    if (askedAt !== undefined) return
    askedAt = now
    // An ordinary end takes the handlers away first, and the same Ctrl+C would still kill the process then.
    process.once('beforeExit', () => process.exit())
    leaving.abort()
  }
  for (const signal of signals) process.on(signal, leave)
  return () => {
    if (askedAt === undefined) for (const signal of signals) process.off(signal, leave)
  }
}

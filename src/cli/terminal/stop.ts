/** Milliseconds in which repeated signals count as one: a terminal and a launcher may both pass on one Ctrl+C. */
export const sameSignal = 100

/** Resolves on the first SIGTERM or SIGINT; a second one ends the process at once. */
export function waitForStop(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  let askedAt: number | undefined
  const onSignal = () => {
    const now = performance.now()
    if (askedAt !== undefined && now - askedAt > sameSignal) process.exit(130)
    askedAt ??= now
    resolve()
  }
  process.on('SIGTERM', onSignal)
  process.on('SIGINT', onSignal)
  return promise
}

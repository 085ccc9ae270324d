/**
 * Shares work between those who ask for it. At most one run is under way. A request that comes during a run gets the next
 * one, because the current run may have begun before the reason for the request.
 */
export function createRounds(run: () => Promise<void>): () => Promise<void> {
  let current: Promise<void> | undefined
  let next: Promise<void> | undefined

  function start(): Promise<void> {
    next = undefined
    const started = run()
    current = started
    const end = () => {
      if (current === started) current = undefined
    }
    started.then(end, end)
    return started
  }

  return () => {
    if (next) return next
    if (!current) return start()
    next = current.then(start, start)
    return next
  }
}

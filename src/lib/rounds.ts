/**
 * Shares runs of `run` between concurrent callers. At most one run is active. A caller that arrives during a run gets
 * the next run, because the active run may have started too early to see that caller's change.
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

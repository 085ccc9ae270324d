export type Turns = <Result>(task: () => Promise<Result>) => Promise<Result>

/** One after the other, in the order in which they came; one that fails holds up nobody behind it. */
export function createTurns(): Turns {
  let last: Promise<unknown> = Promise.resolve()
  return (task) => {
    const turn = last.then(task)
    last = turn.catch(() => undefined)
    return turn
  }
}

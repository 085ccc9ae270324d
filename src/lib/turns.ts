export type Turns = <Result>(task: () => Promise<Result>) => Promise<Result>

/** Runs tasks one after the other, in the order of the calls. A failed task does not block the tasks after it. */
export function createTurns(): Turns {
  let last: Promise<unknown> = Promise.resolve()
  return (task) => {
    const turn = last.then(task)
    last = turn.catch(() => undefined)
    return turn
  }
}

import { writeSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'

/**
 * For tests of recovery after `kill -9`. With `SALLYPORT_CRASH_AT=n` the process kills itself at the n-th crash point
 * that the main thread reaches; with `SALLYPORT_CRASH_AT=storage:n` at the n-th that the storage thread reaches.
 */
const wanted = toWanted(process.env.SALLYPORT_CRASH_AT)
let reached = 0

export function crashPoint(name: string): void {
  if (wanted > 0) count(name)
}

function count(name: string): void {
  reached++
  if (reached !== wanted) return
  writeSync(2, `crash point ${reached}: ${name}\n`)
  process.kill(process.pid, 'SIGKILL')
}

function toWanted(text: string | undefined): number {
  const [, thread, number] = /^(storage:)?(\d{1,9})$/.exec(text ?? '') ?? []
  return (thread === undefined) === isMainThread ? Number(number ?? 0) : 0
}

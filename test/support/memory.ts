import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collect: () => void = runInNewContext('gc')

/** Bytes of buffers that are still referenced. Unreferenced buffers are collected first. */
export function heldBuffers(): number {
  collect()
  collect() // the first call may only complete a collection that is already running
  return process.memoryUsage().arrayBuffers
}

import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
const collect: () => void = runInNewContext('gc')

/** Bytes of buffers that somebody still holds: what was let go of and not collected yet does not count. */
export function heldBuffers(): number {
  collect()
  collect() // the first one may find one under way
  return process.memoryUsage().arrayBuffers
}

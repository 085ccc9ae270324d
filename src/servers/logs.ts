import { createRingBuffer, type RingBuffer } from '../lib/ring-buffer.ts'
import type { Masking } from '../masking/masking.ts'

/** The last words of a program, masked before they are kept: what is dropped later cannot cut a value in two. */
export function createServerLogs(maxBytes: number, masking: Pick<Masking, 'stream'>): RingBuffer {
  const ring = createRingBuffer(maxBytes)
  const stream = masking.stream()
  return {
    push(chunk) {
      const ready = stream.push(chunk)
      if (ready.length > 0) ring.push(ready)
    },
    lines() {
      const rest = stream.rest().toString('utf8')
      return rest === '' ? ring.lines() : [...ring.lines(), ...rest.replace(/\n$/, '').split('\n')]
    },
    dropped: ring.dropped,
  }
}

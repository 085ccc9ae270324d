/** Keeps the last bytes of a talkative process; lines are made of them only when somebody looks. */
export type RingBuffer = {
  push(chunk: Buffer): void
  lines(): string[]
  /** Lines that no longer fit. */
  dropped(): number
}

const newline = 0x0a
const maxPieces = 1000

export function createRingBuffer(maxBytes: number): RingBuffer {
  let pieces: Buffer[] = []
  let bytes = 0
  let dropped = 0

  /** What is cut ends with a line, unless a single line is longer than all there is room for. */
  const compact = () => {
    const whole = Buffer.concat(pieces)
    const over = Math.max(0, whole.length - maxBytes)
    const lineEnd = over === 0 || whole[over - 1] === newline ? over : whole.indexOf(newline, over) + 1
    const from = lineEnd === 0 || lineEnd === whole.length ? over : lineEnd
    dropped += countLines(whole.subarray(0, from))
    pieces = from === 0 ? [whole] : [Buffer.from(whole.subarray(from))]
    bytes = whole.length - from
  }
  return {
    push(chunk) {
      pieces.push(chunk)
      bytes += chunk.length
      // Now and then instead of each time: a flood must cost no more than the copying of its bytes.
      if (bytes > 2 * maxBytes || pieces.length > maxPieces) compact()
    },
    lines() {
      compact()
      const text = pieces[0]?.toString('utf8') ?? ''
      return text
        .replace(/\n$/, '')
        .split('\n')
        .slice(text === '' ? 1 : 0)
    },
    dropped() {
      compact()
      return dropped
    },
  }
}

function countLines(bytes: Buffer): number {
  let count = 0
  for (const byte of bytes) if (byte === newline) count++
  return count
}

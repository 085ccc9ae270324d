/** Keeps the last bytes of a process's output. Lines are split only when they are read. */
export type RingBuffer = {
  push(chunk: Buffer): void
  /** The kept lines. `more` is treated as if it had been pushed, but is not kept. */
  read(more?: Buffer): Kept
}

export type Kept = {
  readonly lines: string[]
  /** The number of lines that were dropped because they did not fit. */
  readonly dropped: number
  /** True if the last line has no line break yet and may become longer. */
  readonly unfinished: boolean
}

const newline = 0x0a
const maxPieces = 1000

export function createRingBuffer(maxBytes: number): RingBuffer {
  let pieces: Buffer[] = []
  let bytes = 0
  let dropped = 0

  /** The start of the kept bytes: the start of a line, or a position inside a line that is longer than `maxBytes`. */
  const beginning = (whole: Buffer) => {
    const over = Math.max(0, whole.length - maxBytes)
    const lineEnd = over === 0 || whole[over - 1] === newline ? over : whole.indexOf(newline, over) + 1
    return lineEnd === 0 || lineEnd === whole.length ? over : lineEnd
  }
  const compact = () => {
    const whole = Buffer.concat(pieces)
    const from = beginning(whole)
    dropped += countLines(whole.subarray(0, from))
    pieces = from === 0 ? [whole] : [Buffer.from(whole.subarray(from))]
    bytes = whole.length - from
  }
  return {
    push(chunk) {
      pieces.push(chunk)
      bytes += chunk.length
      // Compact only now and then, so that a flood of output costs little more than copying its bytes.
      if (bytes > 2 * maxBytes || pieces.length > maxPieces) compact()
    },
    read(more) {
      compact()
      const whole = more ? Buffer.concat([...pieces, more]) : Buffer.concat(pieces)
      const from = beginning(whole)
      const text = whole.toString('utf8', from)
      const lines = text === '' ? [] : text.replace(/\n$/, '').split('\n')
      const unfinished = text !== '' && !text.endsWith('\n')
      return { lines, dropped: dropped + countLines(whole.subarray(0, from)), unfinished }
    },
  }
}

function countLines(bytes: Buffer): number {
  let count = 0
  for (const byte of bytes) if (byte === newline) count++
  return count
}

/** Keeps the last bytes of a talkative process; lines are made of them only when somebody looks. */
export type RingBuffer = {
  push(chunk: Buffer): void
  /** The kept lines. `more` is read as if it had been pushed, but is not kept. */
  read(more?: Buffer): Kept
}

export type Kept = {
  readonly lines: string[]
  /** Lines that no longer fit. */
  readonly dropped: number
  /** The last line has no line break yet, and may become longer. */
  readonly unfinished: boolean
}

const newline = 0x0a
const maxPieces = 1000

export function createRingBuffer(maxBytes: number): RingBuffer {
  let pieces: Buffer[] = []
  let bytes = 0
  let dropped = 0

  /** Where the kept bytes begin: at the start of a line, or within a line that is longer than the bound. */
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
      // Now and then instead of each time: a flood must cost no more than the copying of its bytes.
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

/** What stood at both ends of a line that was too long: enough to tell whose answer it was. */
export type LongLine = { readonly head: Buffer; readonly tail: Buffer; readonly bytes: number }

export type LineReader = { push(chunk: Buffer): void }

const keep = 4096
const newline = 0x0a

/** Cuts a byte stream into lines. A line over the limit is let go piece by piece and reported, never gathered. */
export function createLineReader(parts: {
  maxBytes: number
  onLine(line: Buffer): void
  /** At the end of a line that was too long. */
  onLongLine?(line: LongLine): void
  /** At the moment when a line becomes too long; it may never end. */
  onOverflow?(): void
}): LineReader {
  let chunks: Buffer[] = []
  let bytes = 0
  let long: { head: Buffer; tail: Buffer } | undefined

  const add = (piece: Buffer) => {
    bytes += piece.length
    if (long) {
      long.tail = Buffer.concat([long.tail, piece.subarray(-keep)]).subarray(-keep)
      return
    }
    chunks.push(piece)
    if (bytes <= parts.maxBytes) return
    const whole = Buffer.concat(chunks)
    long = { head: Buffer.from(whole.subarray(0, keep)), tail: Buffer.from(whole.subarray(-keep)) }
    chunks = []
    parts.onOverflow?.()
  }
  const end = () => {
    const line = long ? undefined : joined(chunks)
    const tooLong = long && { ...long, bytes }
    chunks = []
    bytes = 0
    long = undefined
    if (tooLong) parts.onLongLine?.(tooLong)
    if (line) parts.onLine(line)
  }
  return {
    push(chunk) {
      let from = 0
      while (from < chunk.length) {
        const at = chunk.indexOf(newline, from)
        if (at === -1) {
          add(chunk.subarray(from))
          return
        }
        add(chunk.subarray(from, at))
        end()
        from = at + 1
      }
    },
  }
}

/** The id of an answer that was too long to keep, read from where JSON writers put it. */
export function idOfLongLine(line: LongLine): string | undefined {
  const start = /^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d+|"[^"\\]*")\s*,/
  const head = start.exec(line.head.toString('latin1'))
  if (head) return head[1]
  return /,\s*"id"\s*:\s*(\d+|"[^"\\]*")\s*\}\s*$/.exec(line.tail.toString('latin1'))?.[1]
}

function joined(chunks: readonly Buffer[]): Buffer {
  const [first] = chunks
  return chunks.length === 1 && first ? first : Buffer.concat(chunks)
}

/**
 * A line feed in a server's JSON would end the line early, and what follows would pass for another message.
 * In JSON it only ever stands between values, so that a blank says the same, and ids and numbers keep their digits.
 */
export function toOneLine(message: Buffer): Buffer {
  if (!lineEnds.some((end) => message.includes(end))) return message
  const line = Buffer.from(message)
  for (const end of lineEnds) {
    for (let at = line.indexOf(end); at !== -1; at = line.indexOf(end, at + 1)) line[at] = 0x20
  }
  return line
}

const lineEnds = [0x0a, 0x0d]

import { createPieces } from '../lib/pieces.ts'

/** Beginning and end of a line that was too long: enough to find the id of the answer. */
export type LongLine = { readonly head: Buffer; readonly tail: Buffer; readonly bytes: number }

export type LineReader = { push(chunk: Buffer): void }

const keep = 4096
const newline = 0x0a
/** A line may exceed the limit by this much and still end; then only its answer is lost. */
const endlessBytes = 16 * 1024 * 1024

/** Splits a byte stream into lines. A line over the limit is dropped piece by piece and reported; it is never buffered. */
export function createLineReader(parts: {
  maxBytes: number
  onLine(line: Buffer): void
  /** At the end of a line that exceeded the limit. */
  onLongLine?(line: LongLine): void
  /** When a line exceeds the limit. The line may never end. */
  onOverflow?(): void
  /** When a line exceeds the limit by so much that it is treated as endless. */
  onEndless?(): void
}): LineReader {
  const pieces = createPieces()
  let bytes = 0
  let long: { head: Buffer; tail: Buffer } | undefined

  const add = (piece: Buffer) => {
    bytes += piece.length
    if (long) {
      long.tail = Buffer.concat([long.tail, piece.subarray(-keep)]).subarray(-keep)
      const endless = parts.maxBytes + endlessBytes
      if (bytes > endless && bytes - piece.length <= endless) parts.onEndless?.()
      return
    }
    pieces.add(piece)
    if (bytes <= parts.maxBytes) return
    long = toEnds(pieces.list())
    pieces.clear()
    parts.onOverflow?.()
  }
  const end = () => {
    const line = long ? undefined : pieces.take()
    const tooLong = long && { ...long, bytes }
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

/** The id of an answer that was too long, from the beginning or end of its line. */
export function idOfLongLine(line: LongLine): string | undefined {
  const start = /^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d+|"[^"\\]*")\s*,/
  const head = start.exec(line.head.toString('latin1'))
  if (head) return head[1]
  return /,\s*"id"\s*:\s*(\d+|"[^"\\]*")\s*\}\s*$/.exec(line.tail.toString('latin1'))?.[1]
}

/** Copies both ends, so that the pieces can be released. The line is never joined. */
function toEnds(chunks: readonly Buffer[]): { head: Buffer; tail: Buffer } {
  const head: Buffer[] = []
  for (let at = 0, bytes = 0; at < chunks.length && bytes < keep; at++) {
    const piece = chunks[at]?.subarray(0, keep - bytes) ?? Buffer.alloc(0)
    head.push(piece)
    bytes += piece.length
  }
  const tail: Buffer[] = []
  for (let at = chunks.length - 1, bytes = 0; at >= 0 && bytes < keep; at--) {
    const piece = chunks[at]?.subarray(-(keep - bytes)) ?? Buffer.alloc(0)
    tail.unshift(piece)
    bytes += piece.length
  }
  return { head: Buffer.concat(head), tail: Buffer.concat(tail) }
}

/**
 * A line feed inside a server's JSON would end the line, and the rest would be read as another message. JSON allows line feeds
 * only between values, so a space can replace them.
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

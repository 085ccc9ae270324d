import type { Readable, Writable } from 'node:stream'
import { createLineReader, type LongLine, toOneLine } from '../../wire/lines.ts'

/** Standard input and output of the MCP client: one message per line. */
export type Pipe = {
  write(message: Buffer): void
  /**
   * Pauses the stream while the client does not read. The returned function counts bytes that are buffered until a complete
   * message can be written. If too many bytes are buffered, only one stream is read at a time.
   */
  slowDown(stream: Readable): (bytes: number) => void
  /** Resolves when standard input or output is closed. */
  readonly ended: Promise<void>
  close(): void
}

export type PipeParts = {
  readonly input: Readable
  readonly output: Writable
  readonly maxBytes: number
  onLine(line: Buffer): void
  onLongLine(line: LongLine): void
}

const mostUnread = 4 * 1024 * 1024
/** Buffered bytes of incomplete answers. */
const mostKept = 32 * 1024 * 1024
const lineEnd = Buffer.from('\n')

export function openPipe({ input, output, ...parts }: PipeParts): Pipe {
  const filling = new Map<Readable, number>()
  let kept = 0
  const { promise: ended, resolve } = Promise.withResolvers<void>()
  const reader = createLineReader(parts)
  const isFull = () => output.writableLength > mostUnread
  input.on('data', (chunk: Buffer) => reader.push(chunk))
  for (const end of ['end', 'error', 'close']) input.on(end, () => resolve())
  for (const end of ['error', 'close']) output.on(end, () => resolve())
  output.on('drain', steer)

  /** The oldest incomplete answer is always read, because otherwise no answer would ever be complete. */
  function steer(): void {
    const crowded = kept > mostKept
    let first = true
    for (const [stream, bytes] of filling) {
      const waits = isFull() || (crowded && bytes > 0 && !first)
      if (bytes > 0) first = false
      if (waits) stream.pause()
      else stream.resume()
    }
  }

  function count(stream: Readable, bytes: number): void {
    const before = filling.get(stream)
    if (before === undefined) return
    filling.set(stream, before + bytes)
    kept += bytes
    if (kept > mostKept) steer()
  }

  function forget(stream: Readable): void {
    const wasCrowded = kept > mostKept
    kept -= filling.get(stream) ?? 0
    filling.delete(stream)
    if (wasCrowded) steer()
  }
  return {
    ended,
    write(message) {
      if (!output.writable) return
      output.write(Buffer.concat([toOneLine(message), lineEnd]))
      if (isFull()) steer()
    },
    slowDown(stream) {
      filling.set(stream, 0)
      stream.on('close', () => forget(stream))
      if (isFull()) stream.pause()
      return (bytes) => count(stream, bytes)
    },
    close: () => void input.destroy(),
  }
}

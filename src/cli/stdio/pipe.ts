import type { Readable, Writable } from 'node:stream'
import { createLineReader, type LongLine, toOneLine } from '../../wire/lines.ts'

/** Standard input and output as the program at the other end sees them: one message per line, and nothing else. */
export type Pipe = {
  write(message: Buffer): void
  /** A stream that fills the pipe waits while the program at the other end does not read. */
  slowDown(stream: Readable): void
  /** Nobody writes to us any more, or nobody reads. */
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
const lineEnd = Buffer.from('\n')

export function openPipe({ input, output, ...parts }: PipeParts): Pipe {
  const filling = new Set<Readable>()
  const { promise: ended, resolve } = Promise.withResolvers<void>()
  const reader = createLineReader(parts)
  const isFull = () => output.writableLength > mostUnread
  input.on('data', (chunk: Buffer) => reader.push(chunk))
  for (const end of ['end', 'error', 'close']) input.on(end, () => resolve())
  for (const end of ['error', 'close']) output.on(end, () => resolve())
  output.on('drain', () => {
    for (const stream of filling) stream.resume()
  })
  return {
    ended,
    write(message) {
      if (!output.writable) return
      output.write(Buffer.concat([toOneLine(message), lineEnd]))
      if (isFull()) for (const stream of filling) stream.pause()
    },
    slowDown(stream) {
      filling.add(stream)
      stream.on('close', () => filling.delete(stream))
      if (isFull()) stream.pause()
    },
    close: () => void input.destroy(),
  }
}

import { createRingBuffer, type Kept } from '../lib/ring-buffer.ts'
import { toPlainLine } from '../lib/text.ts'
import type { Masking } from '../masking/masking.ts'

/** What a program writes to standard error, over all its starts. */
export type ServerLogs = {
  push(chunk: Buffer): void
  read(): Kept
  /** The program is started again: `lastLines` shows this start only. */
  begin(): void
  /** The last lines since the last start, short enough to be shown beside an error. */
  lastLines(): string[]
}

const shownLines = 12
const shownLength = 400

/** Masked before it is kept: dropping old bytes later cannot cut a secret in two and so hide it from the mask. */
export function createServerLogs(maxBytes: number, masking: Pick<Masking, 'stream'>): ServerLogs {
  const ring = createRingBuffer(maxBytes)
  const stream = masking.stream()
  let begunAt = 0

  const read = () => ring.read(stream.rest())

  return {
    push(chunk) {
      const ready = stream.push(chunk)
      if (ready.length > 0) ring.push(ready)
    },
    read,
    begin() {
      const { lines, dropped } = read()
      begunAt = lines.length + dropped
    },
    lastLines() {
      const { lines, dropped } = read()
      return lines
        .slice(Math.max(0, begunAt - dropped))
        .filter((line) => !isNoise(line))
        .slice(-shownLines)
        .map((line) => toShown(toPlainLine(line)))
    },
  }
}

/** Frames of a stack, brackets and version lines would push out the message that says what is wrong. */
function isNoise(line: string): boolean {
  return /^\s+(at |File ")/.test(line) || /^[\s^~{}[\](),;]*$/.test(line) || /^Node\.js v\d/.test(line)
}

function toShown(line: string): string {
  return line.length > shownLength ? `${line.slice(0, shownLength)} …` : line
}

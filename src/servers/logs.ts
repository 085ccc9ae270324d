import { createRingBuffer, type Kept } from '../lib/ring-buffer.ts'
import { toPlainLine } from '../lib/text.ts'
import type { Masking } from '../masking/masking.ts'

/** The standard error of a program, over all its starts. */
export type ServerLogs = {
  push(chunk: Buffer): void
  read(): Kept
  /** Marks a new start of the program: `lastLines` returns only lines written after it. */
  begin(): void
  /** The last lines since the last start, shortened for display next to an error. */
  lastLines(): string[]
}

const shownLines = 12
const shownLength = 400

/** Masks before storing: if old bytes were dropped first, a secret could be cut in two and not be recognised. */
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

/** Stack frames, brackets and version lines are left out, so that the few shown lines contain the error message. */
function isNoise(line: string): boolean {
  return /^\s+(at |File ")/.test(line) || /^[\s^~{}[\](),;]*$/.test(line) || /^Node\.js v\d/.test(line)
}

function toShown(line: string): string {
  return line.length > shownLength ? `${line.slice(0, shownLength)} …` : line
}

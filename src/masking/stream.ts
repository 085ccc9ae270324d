import { replaceSpans } from './bytes.ts'
import type { Finder } from './finder.ts'

/** Masks output that arrives in chunks, including values that are split between two chunks. */
export type MaskedStream = {
  /** Returns the masked output that is complete: whole lines. */
  push(chunk: Buffer): Buffer
  /** The masked form of the bytes that `push` has not returned yet. */
  rest(): Buffer
}

const newline = 0x0a
/** A longer line without a line break is returned as well, except for its end, which could be part of a value. */
const longestWait = 64 * 1024
const nothing: Buffer = Buffer.alloc(0)

export function createMaskedStream(finder: Finder): MaskedStream {
  let waiting: Buffer = nothing

  return {
    push(chunk) {
      waiting = waiting.length === 0 ? chunk : Buffer.concat([waiting, chunk])
      const cut = placeToCut()
      if (cut === 0) return nothing
      const spans = finder.find(waiting)
      const { end, safe } = withoutCutting(spans, cut)
      const ready = replaceSpans(waiting.subarray(0, end), safe)
      waiting = Buffer.from(waiting.subarray(end))
      return ready
    },
    rest: () => replaceSpans(waiting, finder.find(waiting)),
  }

  /** The position after the last line, or far enough before the end that no value can extend over it. */
  function placeToCut(): number {
    const reach = finder.matcher.longest()
    const line = waiting.lastIndexOf(newline, finder.hasLines() ? -1 - reach : -1) + 1
    return line > 0 || waiting.length < longestWait + reach ? line : waiting.length - reach
  }
}

/** A value that extends over the cut stays in the buffer. */
function withoutCutting(spans: readonly number[], cut: number): { end: number; safe: number[] } {
  const safe: number[] = []
  for (let index = 0; index < spans.length; index += 2) {
    const [start = 0, end = 0] = [spans[index], spans[index + 1]]
    if (start >= cut) break
    if (end > cut) return { end: start, safe }
    safe.push(start, end)
  }
  return { end: cut, safe }
}

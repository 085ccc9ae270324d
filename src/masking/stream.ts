import { replaceSpans } from './bytes.ts'
import type { Finder } from './finder.ts'

/** What somebody prints piece by piece: a value that comes in two pieces is hidden as well. */
export type MaskedStream = {
  /** Gives on what is complete: whole lines. */
  push(chunk: Buffer): Buffer
  /** What has come and was not given on yet, as it would be now. */
  rest(): Buffer
}

const newline = 0x0a
/** A line that does not end is given on all the same, but for as much as a value could still be part of. */
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

  /** Behind the last line, or so far before the end that no value can reach over the cut. */
  function placeToCut(): number {
    const reach = finder.matcher.longest()
    const line = waiting.lastIndexOf(newline, finder.hasLines() ? -1 - reach : -1) + 1
    return line > 0 || waiting.length < longestWait + reach ? line : waiting.length - reach
  }
}

/** A value that stands over the cut waits with what follows it. */
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

import { hiddenMark } from '../lib/secret.ts'
import type { Finder } from './finder.ts'
import type { Spans } from './matcher.ts'

/** The masked bytes, and the number of values that were masked in them. */
export type Masked = { readonly bytes: Buffer; readonly found: number }

const mark = Buffer.from(hiddenMark)
const quote = 0x22
const backslash = 0x5c
/** Number of bytes after which `maskStrings` yields, so that other work can run. */
const pauseEvery = 128 * 1024

export function replaceSpans(bytes: Buffer, spans: Spans): Buffer {
  const pieces: Buffer[] = []
  let at = 0
  for (let index = 0; index < spans.length; index += 2) {
    pieces.push(bytes.subarray(at, spans[index]), mark)
    at = spans[index + 1] ?? at
  }
  return Buffer.concat([...pieces, bytes.subarray(at)])
}

/**
 * Masks the strings of a JSON message, including object keys. Only strings change, so the result is still JSON. Each
 * string is unescaped before the search, so that JSON escapes cannot hide a value.
 */
export function* maskStrings(bytes: Buffer, finder: Finder): Generator<undefined, Masked> {
  const pieces: Buffer[] = []
  let kept = 0
  let found = 0
  let pausedAt = 0
  for (let start = bytes.indexOf(quote); start !== -1; ) {
    const end = endOfString(bytes, start)
    if (end === undefined) break
    const raw = bytes.subarray(start + 1, end)
    const escaped = raw.includes(backslash)
    const text = escaped ? Buffer.from(readString(bytes, start, end)) : raw
    const spans = yield* finder.findSlowly(text)
    if (spans.length > 0) {
      found += spans.length / 2
      const masked = replaceSpans(text, spans)
      pieces.push(
        bytes.subarray(kept, start),
        escaped ? Buffer.from(JSON.stringify(masked.toString('utf8'))) : quoted(masked),
      )
      kept = end + 1
    }
    start = bytes.indexOf(quote, end + 1)
    if (end - pausedAt < pauseEvery) continue
    pausedAt = end
    yield
  }
  if (found === 0) return { bytes, found }
  return { bytes: Buffer.concat([...pieces, bytes.subarray(kept)]), found }
}

function quoted(text: Buffer): Buffer {
  return Buffer.concat([Buffer.from([quote]), text, Buffer.from([quote])])
}

/** The position of the closing quote. A quote after an even number of backslashes is not escaped. */
function endOfString(bytes: Buffer, start: number): number | undefined {
  for (let end = bytes.indexOf(quote, start + 1); end !== -1; end = bytes.indexOf(quote, end + 1)) {
    let before = end - 1
    while (bytes[before] === backslash) before--
    if ((end - before) % 2 === 1) return end
  }
  return undefined
}

/** Invalid JSON is searched without unescaping it. */
function readString(bytes: Buffer, start: number, end: number): string {
  try {
    return String(JSON.parse(bytes.toString('utf8', start, end + 1)))
  } catch {
    return bytes.toString('utf8', start + 1, end)
  }
}

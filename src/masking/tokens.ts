import type { Spans } from './matcher.ts'

/**
 * Finds tokens by their format, even if the gateway does not know them. It uses no regular expressions: each kind is a
 * prefix and a run of allowed characters, so the cost per byte is constant for any text.
 */
type Kind = {
  readonly start: string
  /** The allowed characters after the prefix, and their minimum and maximum number. */
  readonly run: Uint8Array
  readonly least: number
  readonly most?: number
  /** The position in the run that must be an underscore. */
  readonly underscore?: number
  /** Package and page names can have the same prefix. With `random`, a run that reads like words is not a token. */
  readonly random?: boolean
}

const lower = 'abcdefghijklmnopqrstuvwxyz'
const digits = '0123456789'
const alnum = toClass(lower + lower.toUpperCase() + digits)
const word = toClass(`${lower}${lower.toUpperCase()}${digits}_-`)
const capital = toClass(lower.toUpperCase() + digits)
const digit = toClass(digits)
const small = toClass(lower)
const large = toClass(lower.toUpperCase())

const kinds: readonly Kind[] = [
  ...['ghp_', 'gho_', 'ghu_', 'ghs_', 'ghr_'].map((start) => ({ start, run: alnum, least: 36 })),
  { start: 'github_pat_', run: word, least: 50 },
  ...['xoxa-', 'xoxb-', 'xoxe-', 'xoxp-', 'xoxr-', 'xoxs-'].map((start) => ({ start, run: word, least: 20 })),
  { start: 'xoxo-', run: word, least: 20, random: true },
  ...['AKIA', 'ASIA'].map((start) => ({ start, run: capital, least: 16, most: 16 })),
  { start: 'sk-ant-', run: word, least: 24, random: true },
  { start: 'sk-', run: word, least: 32, random: true },
  { start: 'sp_', run: word, least: 54, most: 54, underscore: 10 },
]
const kindsByFirst = new Map<number, Kind[]>()
for (const kind of kinds) {
  const first = kind.start.charCodeAt(0)
  kindsByFirst.set(first, [...(kindsByFirst.get(first) ?? []), kind])
}

/** The first characters of all kinds, and `e` for a JWT. */
const starts = toClass(`e${kinds.map(({ start }) => start[0]).join('')}`)

/** The shortest token has 20 characters. So a search that tests every tenth position always hits one. */
const leastRun = 20
const stride = leastRun / 2

/** Searches from `from` until the end or until the budget is used up. Returns the position to continue from. */
export function findTokens(bytes: Buffer, from: number, budget: number, spans: Spans): number {
  let at = from
  let left = budget
  for (; at + stride <= bytes.length && left > 0; at += stride) {
    left--
    if (word[bytes[at] ?? 0] === 0 || word[bytes[at + stride - 1] ?? 0] === 0) continue
    let middle = at + stride - 2
    while (middle > at && word[bytes[middle] ?? 0] === 1) middle--
    if (middle > at) continue
    const end = findInRun(bytes, at, spans)
    left -= (end - at) >> 2
    while (at + stride < end) at += stride
  }
  return left > 0 ? bytes.length : at
}

/** Searches one run of `word` characters. Returns the end of the run. */
function findInRun(bytes: Buffer, inside: number, spans: Spans): number {
  let start = inside
  while (start > 0 && inside - start < farthestBack && word[bytes[start - 1] ?? 0] === 1) start--
  let end = inside
  while (end < bytes.length && end - inside < longestRun && word[bytes[end] ?? 0] === 1) end++
  // A token may extend past this piece of the run.
  let stop = end
  while (stop - end < longestToken && word[bytes[stop] ?? 0] === 1) stop++
  const run = { bytes, stop, isName: createNameCheck(bytes, start) }
  let jwt: number | undefined
  for (let at = start; at < end; at++) {
    if (starts[bytes[at] ?? 0] === 0 || !isBeginning(bytes, at)) continue
    // Computed once per run, because the end of a JWT is the same for every position in it.
    if (isObjectStart(bytes, at)) jwt ??= endOfJwt(bytes, end)
    const found = isObjectStart(bytes, at) ? jwt : endOfKind(run, at)
    if (found === undefined || found < 0) continue
    spans.push(at, found)
    at = found
  }
  return end
}

const farthestBack = 128
const longestToken = 1024
/** Longer runs are searched in pieces, so that one call does not take too long. */
const longestRun = 16 * 1024

/**
 * A token begins at the start of a word, or after an escape such as `
 * ` in JSON.
 */
function isBeginning(bytes: Buffer, at: number): boolean {
  const before = bytes[at - 1] ?? 0
  return alnum[before] === 0 || (escapable[before] === 1 && bytes[at - 2] === 0x5c)
}

const escapable = toClass('nrtbf')

/** A run of `word` characters that ends at `stop`. */
type Run = { readonly bytes: Buffer; readonly stop: number; isName(at: number): boolean }

function endOfKind(run: Run, at: number): number | undefined {
  for (const kind of kindsByFirst.get(run.bytes[at] ?? 0) ?? []) {
    const end = endOf(kind, run, at)
    if (end !== undefined) return end
  }
  return undefined
}

function endOf(kind: Kind, { bytes, stop, isName }: Run, at: number): number | undefined {
  const { start, least, most } = kind
  for (let index = 0; index < start.length; index++) if (bytes[at + index] !== start.charCodeAt(index)) return undefined
  const begin = at + start.length
  const farthest = Math.min(stop, at + longestToken)
  let end = kind.run === word ? farthest : begin
  while (end < farthest && kind.run[bytes[end] ?? 0] === 1) end++
  if (end - begin < least) return undefined
  if (most !== undefined && (end - begin > most || word[bytes[end] ?? 0] === 1)) return undefined
  if (kind.underscore !== undefined && bytes[begin + kind.underscore] !== 0x5f) return undefined
  return kind.random === true && isName(at) ? undefined : end
}

/**
 * Returns a function that says whether the text at a position reads like a name: no digit, few capitals, few changes
 * from lower to upper case, and no word of 32 letters. Random text has capitals for half of its letters, and a quarter
 * of its letter pairs change from lower to upper case. `aNameLikeThis` has fewer capitals, and `A-Name-Like-This` has
 * no such change inside a word. Positions must increase: each byte is counted once, so that a text with many prefixes
 * stays cheap.
 */
function createNameCheck(bytes: Buffer, from: number): (at: number) => boolean {
  let [first, next] = [from, from]
  let [smalls, larges, turns] = [0, 0, 0]
  let [length, lastDigit, lastLong] = [0, -1, -1]

  return (at) => {
    for (; next < at + judged && word[bytes[next] ?? 0] === 1; next++) {
      const byte = bytes[next] ?? 0
      const turned = turnsAt(bytes, next)
      smalls += small[byte] ?? 0
      larges += large[byte] ?? 0
      if (turned) turns++
      if (digit[byte] === 1) lastDigit = next
      length = turned || alnum[byte] === 0 ? 0 : length + 1
      if (length === longestWord) lastLong = next
    }
    for (; first < at; first++) {
      smalls -= small[bytes[first] ?? 0] ?? 0
      larges -= large[bytes[first] ?? 0] ?? 0
      if (turnsAt(bytes, first)) turns--
    }
    if (lastDigit >= at || lastLong - longestWord >= at) return false
    return Math.min(smalls, larges) * 6 < smalls + larges || turns < 3
  }
}

/** Whether an upper-case letter follows a lower-case letter. Random text has many such places, words have few. */
function turnsAt(bytes: Buffer, at: number): boolean {
  return large[bytes[at] ?? 0] === 1 && small[bytes[at - 1] ?? 0] === 1
}

const judged = 64
const longestWord = 32

/** `{"` in base64. The header and the payload of a JWT begin with it. */
function isObjectStart(bytes: Buffer, at: number): boolean {
  return bytes[at] === 0x65 && bytes[at + 1] === 0x79 && bytes[at + 2] === 0x4a
}

/** The end of a JWT whose header ends at `header`: three parts with dots between them. -1 if there is no JWT. */
function endOfJwt(bytes: Buffer, header: number): number {
  if (bytes[header] !== dot || !isObjectStart(bytes, header + 1)) return -1
  const payload = endOfRun(bytes, header + 1)
  if (bytes[payload] !== dot) return -1
  const end = endOfRun(bytes, payload + 1)
  return end - payload > 16 ? end : -1
}

const dot = 0x2e

function endOfRun(bytes: Buffer, from: number): number {
  let end = from
  while (word[bytes[end] ?? 0] === 1) end++
  return end
}

const keyMark = Buffer.from('PRIVATE KEY-----')
const keyStart = Buffer.from('-----BEGIN ')
const keyEnd = Buffer.from('-----END ')
const capitals = toClass(lower.toUpperCase())
const encoded = toClass(`${lower}${lower.toUpperCase()}${digits}+/=`)
const blank = toClass(' \t\r\n')
/** Quotes, commas and similar characters around the lines of a key in source code or in a quoted mail. */
const around = toClass('"\'`,;+>|#*\\')
const longestLabel = 12
const longestKey = 64 * 1024
/** PEM keys are written in lines of 64 characters. A much shorter piece is a word, unless it is the last line. */
const leastPiece = 16
const keyHeader = /^(?:Proc-Type:|4,ENCRYPTED|DEK-Info:|[A-Z0-9-]{3,20},[0-9A-Fa-f]{8,64})$/

/**
 * Finds private keys in PEM format, with or without the END line. Masks only bytes that can be part of a key: otherwise
 * an attacker could hide ordinary words from readers and approvers by writing them between the BEGIN and END lines.
 * Checks at most `mostMarks` lines per call and returns the position to continue from.
 */
export function findPrivateKeys(bytes: Buffer, from: number, spans: Spans): number {
  let at = bytes.indexOf(keyMark, from)
  for (let marks = 0; at !== -1; marks++) {
    if (marks === mostMarks) return at
    const start = findMark(bytes, at, keyStart)
    const next = bytes.indexOf(keyMark, at + 1)
    if (start !== undefined) hideKey(bytes, { start, body: at + keyMark.length, next }, spans)
    at = next
  }
  return bytes.length
}

const mostMarks = 1000

/** The start of the BEGIN or END line, which may have one word such as `RSA` before `PRIVATE KEY`. */
function findMark(bytes: Buffer, at: number, beginning: Buffer): number | undefined {
  let label = at - 1
  while (at - label <= longestLabel && capitals[bytes[label - 1] ?? 0] === 1) label--
  return [at, label].map((end) => end - beginning.length).find((start) => startsWith(bytes, start, beginning))
}

function startsWith(bytes: Buffer, at: number, text: Buffer): boolean {
  return at >= 0 && bytes.subarray(at, at + text.length).equals(text)
}

function hideKey(bytes: Buffer, { start, body, next }: { start: number; body: number; next: number }, spans: Spans) {
  const endMark = next === -1 ? undefined : findMark(bytes, next, keyEnd)
  const limit = Math.min(endMark ?? (next === -1 ? bytes.length : next), body + longestKey)
  let hidden = { start, end: body }
  let mayBeLast = false
  const show = (upTo: number) => {
    if (hidden.end > hidden.start) spans.push(hidden.start, hidden.end)
    hidden = { start: upTo, end: upTo }
    mayBeLast = false
  }
  for (let at = skipBlank(bytes, body, limit); at < limit; ) {
    const end = endOfPiece(bytes, at, limit)
    const kind = kindOfPiece(bytes, at, end)
    // A short piece is the last line of a key only if the END line follows it.
    if (mayBeLast && kind !== 'around') show(at)
    if (kind === 'word') show(end)
    if (kind === 'word') hideRuns(bytes, at, end, spans)
    if (kind === 'short') mayBeLast = hidden.end > hidden.start
    if (kind === 'key') hidden = { start: hidden.end > hidden.start ? hidden.start : at, end }
    at = skipBlank(bytes, end, limit)
  }
  if (endMark === limit) {
    hidden = { start: hidden.end > hidden.start ? hidden.start : endMark, end: next + keyMark.length }
  }
  show(limit)
}

/** A key that lost its line breaks may begin in the middle of a word. */
function hideRuns(bytes: Buffer, from: number, to: number, spans: Spans): void {
  for (let at = from; at < to; at++) {
    const start = at
    while (at < to && encoded[bytes[at] ?? 0] === 1) at++
    if (at - start >= leastRunInWord) spans.push(start, at)
  }
}

const leastRunInWord = 40

/**
 * Line breaks may also be written as `
 * `, with one or more backslashes.
 */
function skipBlank(bytes: Buffer, from: number, to: number): number {
  let at = from
  while (at < to) {
    let escaped = at
    while (bytes[escaped] === backslash) escaped++
    const isEscape = escaped > at && escapable[bytes[escaped] ?? 0] === 1
    if (!isEscape && blank[bytes[at] ?? 0] === 0) break
    at = isEscape ? escaped + 1 : at + 1
  }
  return at
}

const backslash = 0x5c

function endOfPiece(bytes: Buffer, from: number, to: number): number {
  let at = from + 1
  while (at < to && bytes[at - 1] === backslash && bytes[at] === backslash) at++
  while (at < to && blank[bytes[at] ?? 0] === 0 && bytes[at] !== backslash) at++
  return at
}

function kindOfPiece(bytes: Buffer, from: number, to: number): 'key' | 'short' | 'around' | 'word' {
  let [start, end] = [from, to]
  while (start < end && around[bytes[start] ?? 0] === 1) start++
  while (end > start && around[bytes[end - 1] ?? 0] === 1) end--
  if (start === end) return 'around'
  let at = start
  while (at < end && encoded[bytes[at] ?? 0] === 1) at++
  if (at === end) return end - start >= leastPiece ? 'key' : 'short'
  return keyHeader.test(bytes.toString('latin1', start, Math.min(end, start + 100))) ? 'key' : 'word'
}

function toClass(characters: string): Uint8Array {
  const table = new Uint8Array(256)
  for (const byte of Buffer.from(characters)) table[byte] = 1
  return table
}

import { isUtf8 } from 'node:buffer'
import type { JsonObject, JsonValue } from '../contract/json.ts'
import { isExactNumber } from './numbers.ts'

/** `inexact`: parsing and writing the JSON would change its value. */
export type JsonFault = 'invalid' | 'too-deep' | 'inexact'

export class JsonError extends Error {
  readonly fault: JsonFault

  constructor(fault: JsonFault, message: string) {
    super(message)
    this.name = 'JsonError'
    this.fault = fault
  }
}

/** One member of an object, as byte positions. */
export type Member = {
  readonly key: string
  readonly keyStart: number
  readonly start: number
  readonly end: number
  /** Set only for the member that `scanObject` was asked to read as well. */
  readonly members?: readonly Member[]
}

/** Deeper values parse, but later overflow the stack in `JSON.stringify`, `structuredClone` and canonical forms. */
export const maxDepth = 512

/**
 * Smaller than `maxDepth`, because a request is later nested inside other values: audit entries, exports, stored
 * answers.
 */
export const maxExactDepth = 500

/** Results of a scan: the nesting depth and, if `seen` is given, the facts that `parseExactJson` needs. */
export type Scan = { deepest: number; readonly seen?: Seen | undefined }

/** The number of keys in nested objects, and the first number that a double cannot represent. */
export type Seen = { keys: number; number: string | undefined }

/** A scan is iterative, so it can check values that are nested deeper than `maxDepth`. */
const scanDepth = 100_000

const quote = 0x22
const backslash = 0x5c
const openObject = 0x7b
const closeObject = 0x7d
const openArray = 0x5b
const closeArray = 0x5d
const comma = 0x2c
const colon = 0x3a

/**
 * Validates one JSON object and returns the positions of its members, without building the value. If the member named
 * `inside` is an object, its members are returned as well, because a second scan of a large member would be slow.
 */
export function scanObject(bytes: Buffer, scan: Scan = { deepest: 0 }, inside?: string): Member[] {
  const { members, end } = readObject(bytes, skipSpace(bytes, 0, bytes.length), { scan, level: 0, inside })
  return expectEnd(bytes, end, bytes.length, members)
}

type Walk = { readonly scan: Scan; readonly level: number; readonly inside: string | undefined }

function readObject(bytes: Buffer, from: number, walk: Walk): { members: Member[]; end: number } {
  const to = bytes.length
  const members: Member[] = []
  if (bytes[from] !== openObject) throw invalid(from)
  let at = skipSpace(bytes, from + 1, to)
  if (bytes[at] === closeObject) return { members, end: at + 1 }
  walk.scan.deepest = Math.max(walk.scan.deepest, walk.level)
  while (true) {
    if (bytes[at] !== quote) throw invalid(at)
    const keyStart = at
    at = skipString(bytes, at, to)
    const key = toKey(bytes, keyStart, at)
    at = skipSpace(bytes, at, to)
    if (bytes[at] !== colon) throw invalid(at)
    const start = skipSpace(bytes, at + 1, to)
    const member = readMember(bytes, { key, keyStart, start }, walk)
    members.push(member)
    at = skipSpace(bytes, member.end, to)
    if (bytes[at] === closeObject) return { members, end: at + 1 }
    if (bytes[at] !== comma) throw invalid(at)
    at = skipSpace(bytes, at + 1, to)
  }
}

function readMember(bytes: Buffer, found: Omit<Member, 'end'>, { scan, level, inside }: Walk): Member {
  if (found.key !== inside || bytes[found.start] !== openObject) {
    return { ...found, end: skipValue(bytes, found.start, bytes.length, scan, level) }
  }
  const { members, end } = readObject(bytes, found.start, { scan, level: level + 1, inside: undefined })
  return { ...found, end, members }
}

/** Parses untrusted JSON. The depth is limited, and `__proto__` is an ordinary key. */
export function parseJson(text: string | Buffer): JsonValue {
  return parse(text, maxDepth, undefined)
}

/**
 * Parses JSON whose value must not change when it is stored and sent on. Rejects numbers that a double cannot
 * represent, duplicate keys, `__proto__`, and text that is not valid Unicode.
 */
export function parseExactJson(text: string | Buffer): JsonValue {
  if (typeof text !== 'string' && !isUtf8(text)) throw new JsonError('inexact', 'The text is not valid UTF-8')
  const seen: Seen = { keys: 0, number: undefined }
  const value = parse(text, maxExactDepth, seen)
  if (seen.number !== undefined) throw inexactNumber(seen.number)
  if (countKeys(value) !== seen.keys) throw new JsonError('inexact', 'An object has the same key twice')
  return value
}

/**
 * Like `parseExactJson`, for a part of bytes that were already scanned. The part is scanned again only if another part
 * of the bytes could have caused the problem.
 */
export function parseExactPart(bytes: Buffer, { start, end }: { start: number; end: number }, scan: Scan): JsonValue {
  const { deepest, seen } = scan
  if (seen && seen.number === undefined && deepest <= maxExactDepth && isUtf8(bytes)) {
    const value = build(bytes.toString('utf8', start, end))
    if (countKeys(value) === seen.keys) return value
  }
  return parseExactJson(bytes.subarray(start, end))
}

function parse(text: string | Buffer, depth: number, seen: Seen | undefined): JsonValue {
  const bytes = typeof text === 'string' ? Buffer.from(text) : text
  const start = skipSpace(bytes, 0, bytes.length)
  if (start === bytes.length) throw new JsonError('invalid', 'The JSON text is empty')
  const scan: Scan = { deepest: 0, seen }
  const end = skipValue(bytes, start, bytes.length, scan)
  expectEnd(bytes, end, bytes.length, undefined)
  if (scan.deepest > depth) throw tooDeep(depth)
  return build(typeof text === 'string' ? text : bytes.toString('utf8'))
}

function build(text: string): JsonValue {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new JsonError('invalid', error instanceof Error ? error.message : 'Not JSON')
  }
}

/** The elements of a JSON array, each as its own bytes. */
export function scanArray(bytes: Buffer): Buffer[] {
  const to = bytes.length
  let at = skipSpace(bytes, 0, to)
  if (bytes[at] !== openArray) throw invalid(at)
  const elements: Buffer[] = []
  at = skipSpace(bytes, at + 1, to)
  if (bytes[at] === closeArray) return expectEnd(bytes, at + 1, to, elements)
  while (true) {
    const end = skipValue(bytes, at, to)
    elements.push(bytes.subarray(at, end))
    at = skipSpace(bytes, end, to)
    if (bytes[at] === closeArray) return expectEnd(bytes, at + 1, to, elements)
    if (bytes[at] !== comma) throw invalid(at)
    at = skipSpace(bytes, at + 1, to)
  }
}

/**
 * Counts the keys of all objects in a value. `JSON.parse` drops duplicate keys, so a smaller number than the scan found
 * means duplicates.
 */
function countKeys(value: JsonValue): number {
  if (typeof value === 'string') return demandUnicode(value)
  if (typeof value !== 'object' || value === null) return 0
  let count = 0
  if (Array.isArray(value)) {
    for (const each of value) count += countKeys(each)
    return count
  }
  for (const key of Object.keys(value)) {
    if (key === '__proto__') throw new JsonError('inexact', 'The key __proto__ is not allowed')
    demandUnicode(key)
    count += 1 + countKeys(value[key] ?? null)
  }
  return count
}

function demandUnicode(text: string): 0 {
  if (text.isWellFormed()) return 0
  throw new JsonError('inexact', 'A string contains half of a surrogate pair, which is not valid Unicode')
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function expectEnd<Result>(bytes: Buffer, at: number, to: number, result: Result): Result {
  const end = skipSpace(bytes, at, to)
  if (end !== to) throw invalid(end)
  return result
}

function toKey(bytes: Buffer, start: number, end: number): string {
  const raw = bytes.toString('latin1', start, end)
  if (!raw.includes('\\') && !/[\u0080-\u00ff]/.test(raw)) return raw.slice(1, -1)
  try {
    return JSON.parse(bytes.toString('utf8', start, end))
  } catch {
    throw invalid(start)
  }
}

/** Iterative, so that a deeply nested value cannot overflow the stack. */
function skipValue(bytes: Buffer, from: number, to: number, scan?: Scan, level = 0): number {
  const seen = scan?.seen
  const closers: number[] = []
  let at = from
  while (true) {
    at = skipSpace(bytes, at, to)
    const first = bytes[at]
    if (at >= to || first === undefined) throw invalid(at)
    if (first === openObject || first === openArray) {
      if (closers.length >= scanDepth) throw tooDeep(maxDepth)
      const closer = first === openObject ? closeObject : closeArray
      at = skipSpace(bytes, at + 1, to)
      if (bytes[at] !== closer) {
        closers.push(closer)
        if (scan && closers.length + level > scan.deepest) scan.deepest = closers.length + level
        if (closer === closeObject) {
          at = skipKey(bytes, at, to)
          if (seen) seen.keys++
        }
        continue
      }
      at++
    } else {
      at = first === quote ? skipString(bytes, at, to) : skipScalar(bytes, at, to, seen)
    }
    // After a value: close the objects and arrays that end here, then continue after the next comma.
    while (true) {
      const closer = closers.at(-1)
      if (closer === undefined) return at
      at = skipSpace(bytes, at, to)
      if (bytes[at] === closer) {
        closers.pop()
        at++
        continue
      }
      if (bytes[at] !== comma) throw invalid(at)
      at = skipSpace(bytes, at + 1, to)
      if (closer === closeObject) {
        at = skipKey(bytes, at, to)
        if (seen) seen.keys++
      }
      break
    }
  }
}

function skipKey(bytes: Buffer, from: number, to: number): number {
  if (bytes[from] !== quote) throw invalid(from)
  const at = skipSpace(bytes, skipString(bytes, from, to), to)
  if (bytes[at] !== colon) throw invalid(at)
  return at + 1
}

function skipSpace(bytes: Buffer, from: number, to: number): number {
  let at = from
  while (at < to) {
    const byte = bytes[at]
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) break
    at++
  }
  return at
}

/** As strict as `JSON.parse`, because bytes that are forwarded unparsed must be valid JSON for the receiver. */
function skipString(bytes: Buffer, from: number, to: number): number {
  const near = from + shortText < to ? from + shortText : to
  let at = from + 1
  while (at < near) {
    const byte = bytes[at] ?? 0
    if (special[byte] === 0) at++
    else if (byte === quote) return at + 1
    else at = skipEscape(bytes, at)
  }
  if (at >= to) throw invalid(from)
  return skipLongString(bytes, at, to)
}

/** For shorter strings checking single bytes is faster than creating an Int32Array. */
const shortText = 128

const special = new Uint8Array(256).fill(1, 0, 0x20)
special[quote] = 1
special[backslash] = 1

/** Checks the rest of a string four bytes at a time. */
function skipLongString(bytes: Buffer, from: number, to: number): number {
  const lead = -bytes.byteOffset & 3
  const words = new Int32Array(bytes.buffer, bytes.byteOffset + lead, (to - lead) >> 2)
  let at = from
  while (at < to) {
    const byte = bytes[at] ?? 0
    if (special[byte] === 1) {
      if (byte === quote) return at + 1
      at = skipEscape(bytes, at)
    } else if (((at - lead) & 3) !== 0) {
      at++
    } else {
      let index = (at - lead) >> 2
      while (index < words.length && !hasSpecial(words[index] ?? 0)) index++
      at = lead + index * 4
      while (at < to && special[bytes[at] ?? 0] === 0) at++
    }
  }
  throw invalid(from)
}

/** Bit trick: sets the high bit of each byte that is a control character, a quote or a backslash. */
function hasSpecial(word: number): boolean {
  const quotes = word ^ 0x22222222
  const backslashes = word ^ 0x5c5c5c5c
  const controls = (word - 0x20202020) & ~word
  const marks = controls | ((quotes - 0x01010101) & ~quotes) | ((backslashes - 0x01010101) & ~backslashes)
  return (marks & 0x80808080) !== 0
}

function skipEscape(bytes: Buffer, at: number): number {
  if (bytes[at] !== backslash) throw invalid(at)
  const escaped = bytes[at + 1] ?? 0
  if (escapes[escaped] === 1) return at + 2
  if (escaped !== 0x75 || !hexadecimal.test(bytes.toString('latin1', at + 2, at + 6))) throw invalid(at)
  return at + 6
}

const escapes = new Uint8Array(256)
for (const byte of Buffer.from('"\\/bfnrt')) escapes[byte] = 1
const hexadecimal = /^[0-9a-fA-F]{4}$/

function skipScalar(bytes: Buffer, from: number, to: number, seen?: Seen): number {
  let at = from
  while (at < to && isScalarByte(bytes[at] ?? 0)) at++
  const word = bytes.toString('latin1', from, at)
  if (word === 'true' || word === 'false' || word === 'null') return at
  if (!number.test(word)) throw invalid(from)
  if (seen && seen.number === undefined && !isExactNumber(word)) seen.number = word
  return at
}

const number = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/

function isScalarByte(byte: number): boolean {
  return (
    (byte >= 0x30 && byte <= 0x39) ||
    (byte >= 0x61 && byte <= 0x7a) ||
    byte === 0x2d ||
    byte === 0x2b ||
    byte === 0x2e ||
    byte === 0x45
  )
}

function inexactNumber(word: string): JsonError {
  const shown = word.length <= 40 ? word : `${word.slice(0, 40)}…`
  return new JsonError('inexact', `The number ${shown} cannot be stored exactly: it would become ${Number(word)}`)
}

function tooDeep(depth: number): JsonError {
  return new JsonError('too-deep', `The JSON is nested deeper than ${depth} levels`)
}

function invalid(at: number): JsonError {
  return new JsonError('invalid', `Invalid JSON at byte ${at}`)
}

import type { JsonValue } from '../contract/json.ts'
import { isObject } from '../lib/json.ts'
import { findHidden } from './hidden.ts'

/**
 * Searches for text that tries to steer the model that reads it. It is a heuristic that knows common English phrases,
 * and a person reviews its findings. Every step is linear in the length of the text.
 */
export function findSteering(value: JsonValue): string | undefined {
  try {
    return search(value)
  } catch {
    return 'its text could not be searched' // text that could not be searched is hidden
  }
}

function search(value: JsonValue): string | undefined {
  const texts: string[] = []
  collectTexts(value, texts, true)
  for (const text of texts) {
    const found = findHidden(text) ?? findPseudoTag(text) ?? findPhrase(text)
    if (found !== undefined) return found
  }
  return hasBlob(value) ? 'its text contains long encoded data' : undefined
}

/** Collects every text that a model may see, including parameter names. */
function collectTexts(value: JsonValue, into: string[], pictures: boolean): void {
  if (typeof value === 'string') into.push(value)
  else if (Array.isArray(value)) for (const item of value) collectTexts(item, into, pictures)
  else if (isObject(value)) {
    for (const key of Object.keys(value)) {
      if (key === 'icons' && !pictures) continue
      into.push(key)
      collectTexts(value[key] ?? null, into, pictures)
    }
  }
}

/** Tags that imitate system messages of a model, and HTML comments. */
const pseudoTag =
  /<\/?\s?(?:important|system|system[-_]prompt|system[-_]reminder|sys|inst|secret|hidden|critical|override|assistant)\s?\/?>|<<\/?sys>>|<\|[a-z_]{1,20}\|>|\[\/?inst\]|<!--/i

function findPseudoTag(text: string): string | undefined {
  if (!text.includes('<') && !text.includes('[')) return undefined
  const found = pseudoTag.exec(text)?.[0]
  return found === undefined ? undefined : `its text contains ${found}, which imitates a system message or a comment`
}

const blobLength = 200

/** Encoded text that a model could decode. `icons` are exempt, because they contain image data URLs. */
function hasBlob(value: JsonValue): boolean {
  const texts: string[] = []
  collectTexts(value, texts, false)
  return texts.some((text) => text.length >= blobLength && hasRun(text))
}

function hasRun(text: string): boolean {
  let from = 0
  for (let at = 0; at <= text.length; at++) {
    if (at < text.length && isEncoded(text.charCodeAt(at))) continue
    if (at - from >= blobLength && looksEncoded(text.slice(from, at))) return true
    from = at + 1
  }
  return false
}

function isEncoded(code: number): boolean {
  const isLetter = (code >= 65 && code <= 90) || (code >= 97 && code <= 122)
  return isLetter || (code >= 47 && code <= 57) || code === 43 || code === 45 || code === 95 || code === 61
}

function looksEncoded(run: string): boolean {
  return /[a-z]/.test(run) && /[A-Z]/.test(run) && /[0-9]/.test(run)
}

/** Words of one step, and the most words allowed between the previous step and this one. */
type Step = { readonly words: ReadonlySet<string>; readonly within: number }
type Phrase = { readonly reason: string; readonly steps: readonly Step[] }

const address = '(address)'
const secretFile = '(secret-file)'

const ignoring = 'ignore disregard forget override overrule bypass supersede neglect'
const orders = 'instruction instructions prompt prompts guideline guidelines directive directives'
const people = 'user users human humans person people anyone anybody operator'
const sending = 'send forward upload post exfiltrate transmit leak append attach bcc copy include pass put'
const destinations = `parameter parameters argument arguments field webhook endpoint sidenote url ${address}`

const phrases: readonly Phrase[] = [
  phrase('it tells the model to ignore instructions', [
    ignoring,
    3,
    'previous prior earlier above preceding former foregoing system developer',
    3,
    `${orders} rule rules message messages context command commands policy policies constraint constraints`,
  ]),
  phrase('it tells the model to ignore instructions', [ignoring, 2, 'all your its every', 3, orders]),
  phrase('it asks the model for its own instructions', [
    'reveal leak print repeat disclose exfiltrate dump',
    4,
    'system hidden developer initial',
    2,
    'prompt prompts instruction instructions',
  ]),
  phrase('it tells the model to keep something from the user', [
    "not don't dont never mustn't shouldn't without avoid refrain",
    3,
    'tell telling inform informing mention mentioning reveal revealing disclose disclosing explain explaining',
    5,
    people,
  ]),
  phrase('it tells the model to keep something from the user', [
    'hide conceal keep',
    2,
    'this that it these instructions fact everything call',
    4,
    'from',
    2,
    people,
  ]),
  phrase('it tells the model to do something in secret', [
    'secretly covertly silently quietly unnoticed',
    3,
    'send forward pass include copy append upload read call post transmit bcc attach exfiltrate',
  ]),
  phrase('it tells the model to read files that contain secrets', [
    'read cat contents content copy attach steal grab exfiltrate dump',
    10,
    secretFile,
  ]),
  phrase('it tells the model to pass on secrets', [
    sending,
    6,
    `credentials secrets passwords ${secretFile}`,
    8,
    destinations,
  ]),
  phrase('it tells the model to pass on the conversation or its environment', [
    sending,
    4,
    'all our your entire whole full previous complete every',
    3,
    'conversation history chat transcript messages context environment env',
    8,
    destinations,
  ]),
  phrase('it tells the model to send data elsewhere', [
    'send forward upload post exfiltrate transmit leak bcc copy redirect',
    6,
    'all any every everything each entire full whole contents',
    8,
    address,
  ]),
  phrase('it tells the model to send data elsewhere', [
    'always must',
    4,
    'bcc cc send forward add include set post',
    8,
    address,
  ]),
  phrase('it tells the model to send data elsewhere', ['bcc', 4, address]),
  phrase('it tells the model when to use other tools', [
    'must always never required mandatory important',
    10,
    'before after prior whenever',
    6,
    'other another any every',
    2,
    'tool tools function functions',
  ]),
]

/** `parts`: `[words, most words in between, words, …]` */
function phrase(reason: string, parts: readonly (string | number)[]): Phrase {
  const steps: Step[] = []
  let within = 0
  for (const part of parts) {
    if (typeof part === 'number') within = part
    else steps.push({ words: new Set(part.split(' ')), within })
  }
  return { reason, steps }
}

/** One step of one phrase. Steps of all phrases are numbered, so that their last positions fit in one array. */
type Place = { readonly step: number; readonly isFirst: boolean; readonly within: number; readonly reason?: string }

/** The steps of each word. Later steps come first, so that one word advances a phrase by only one step. */
const places = new Map<string, Place[]>()
let countSteps = 0
for (const { reason, steps } of phrases) {
  for (const [index, { words, within }] of [...steps.entries()].reverse()) {
    const isLast = index === steps.length - 1
    const place = { step: countSteps + index, isFirst: index === 0, within, ...(isLast && { reason }) }
    for (const word of words) places.set(word, [...(places.get(word) ?? []), place])
  }
  countSteps += steps.length
}

const longAgo = -1000
const shortestPhrase = 8

/** Reads the words once and stores the last position of each step. */
function findPhrase(text: string): string | undefined {
  if (text.length < shortestPhrase) return undefined
  let seen: number[] | undefined
  let at = 0
  return eachWord(toPlainLetters(text), (word) => {
    at++
    const here = places.get(word)
    if (!here) return undefined
    seen ??= new Array<number>(countSteps).fill(longAgo)
    for (const { step, isFirst, within, reason } of here) {
      if (!isFirst && at - (seen[step - 1] ?? longAgo) > within + 1) continue
      seen[step] = at
      if (reason !== undefined) return reason
    }
    return undefined
  })
}

/** Converts full-width and other styled letters to plain letters. */
function toPlainLetters(text: string): string {
  const plain = isAscii(text) ? text : text.normalize('NFKC').replaceAll('\u2019', "'")
  return plain.toLowerCase()
}

function isAscii(text: string): boolean {
  for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) > 127) return false
  return true
}

type Visit = (word: string) => string | undefined

/** Written without regular expressions, which were ten times slower: every tool of every server is checked. */
function eachWord(text: string, visit: Visit): string | undefined {
  let from = 0
  let isSpecial = false
  for (let at = 0; at <= text.length; at++) {
    const kind = at < text.length ? kindOf(text.charCodeAt(at)) : gap
    if (kind === special) isSpecial = true
    if (kind !== gap) continue
    const found = at > from ? eachPart(text, { from, to: at, isSpecial }, visit) : undefined
    if (found !== undefined) return found
    from = at + 1
    isSpecial = false
  }
  return undefined
}

type Piece = { readonly from: number; readonly to: number; readonly isSpecial: boolean }

/** An address or the name of a file with secrets is one word. */
function eachPart(text: string, { from, to, isSpecial }: Piece, visit: Visit): string | undefined {
  const found = isSpecial ? toSpecial(text.slice(from, Math.min(to, from + 300))) : undefined
  if (found) return visit(found)
  for (let start = from, at = from; at <= to; at++) {
    if (at < to && kindOf(text.charCodeAt(at)) === letter) continue
    const reason = at > start ? visit(text.slice(start, at)) : undefined
    if (reason !== undefined) return reason
    start = at + 1
  }
  return undefined
}

/** Letters form words, gaps end pieces, `special` occurs in addresses and files, all others separate words. */
const [between, letter, gap, special] = [0, 1, 2, 3]

const kinds = Uint8Array.from({ length: 128 }, (_, code) => {
  const character = String.fromCharCode(code)
  if (/[a-z0-9']/.test(character)) return letter
  if (code <= 32 || '"`()[]{}<>,;'.includes(character)) return gap
  return '/@._'.includes(character) ? special : between
})

/** Letters of all scripts are letters. Punctuation beyond ASCII separates words like ASCII punctuation. */
function kindOf(code: number): number {
  if (code < 128) return kinds[code] ?? between
  if (code === 0xa0) return gap
  const isSign = (code >= 0x2000 && code <= 0x206f) || (code >= 0x3000 && code <= 0x303f)
  return isSign || (code >= 0xfe00 && code <= 0xfe0f) ? between : letter
}

const secretFiles =
  '.ssh/ id_rsa id_ed25519 .aws/credentials /etc/shadow /etc/passwd .netrc .npmrc .env mcp.json .git-credentials .kube/config /proc/self/environ'.split(
    ' ',
  )

function toSpecial(piece: string): string | undefined {
  if (piece.startsWith('id_rsa') || piece.startsWith('id_ed25519')) return secretFile
  const [slash, at] = [piece.includes('/'), piece.includes('@')]
  if (!slash && !at) return secretFiles.includes(piece) ? secretFile : undefined
  if (piece.startsWith('https://') || piece.startsWith('http://')) return address
  if (at && /^[^@]{1,64}@[^@]{1,200}\.[a-z]{2,24}\.?$/.test(piece)) return address
  return slash && secretFiles.some((name) => piece.includes(name)) ? secretFile : undefined
}

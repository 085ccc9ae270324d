import type { JsonValue } from '../contract/json.ts'
import { isObject } from '../lib/json.ts'
import { findHidden } from './hidden.ts'

/**
 * Looks for text that is not there to describe, but to steer the model that reads it. A net and not a proof: it knows
 * what has been seen, in English, and a person looks at what it finds. Every step is linear in the length of the text.
 */
export function findSteering(value: JsonValue): string | undefined {
  for (const text of everyText(value)) {
    const found = findHidden(text) ?? findPseudoTag(text) ?? findPhrase(text)
    if (found !== undefined) return found
  }
  for (const text of everyText(value, 'without pictures')) if (hasBlob(text)) return 'it holds a long encoded text'
  return undefined
}

/** Every text that a model may be shown, the names of parameters included. */
function* everyText(value: JsonValue, pictures?: 'without pictures'): Generator<string> {
  if (typeof value === 'string') yield value
  if (Array.isArray(value)) for (const item of value) yield* everyText(item, pictures)
  if (!isObject(value)) return
  for (const [key, inner] of Object.entries(value)) {
    if (pictures && key === 'icons') continue
    yield key
    yield* everyText(inner, pictures)
  }
}

/** How a page or a model's own format marks what is not the user's text. */
const pseudoTag =
  /<\/?\s?(?:important|system|system[-_]prompt|system[-_]reminder|sys|inst|secret|hidden|critical|override|assistant)\s?\/?>|<<\/?sys>>|<\|[a-z_]{1,20}\|>|\[\/?inst\]|<!--/i

function findPseudoTag(text: string): string | undefined {
  const found = pseudoTag.exec(text)?.[0]
  return found === undefined
    ? undefined
    : `it holds the mark ${found}, which poses as something other than a description`
}

const blobLength = 200

/** A stretch of letters and digits that nobody reads, and that a model might decode. */
function hasBlob(text: string): boolean {
  if (text.length < blobLength) return false
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

/** Words of one kind, and how many words may stand between them and those before. */
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
  phrase('it tells the model to read files that hold secrets', [
    'read cat contents content copy attach steal grab exfiltrate dump',
    10,
    secretFile,
  ]),
  phrase('it tells the model to hand over secrets', [
    sending,
    6,
    `credentials secrets passwords ${secretFile}`,
    8,
    destinations,
  ]),
  phrase('it tells the model to hand over the conversation or its surroundings', [
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

/** `[words, how many may stand between, words, …]` */
function phrase(reason: string, parts: readonly (string | number)[]): Phrase {
  const steps: Step[] = []
  let within = 0
  for (const part of parts) {
    if (typeof part === 'number') within = part
    else steps.push({ words: new Set(part.split(' ')), within })
  }
  return { reason, steps }
}

type Place = { readonly phrase: number; readonly step: number }

/** Where each word counts, so that any other word costs one look. Later steps first: a word moves a phrase one step. */
const places = new Map<string, Place[]>()
for (const [index, { steps }] of phrases.entries()) {
  for (const [step, { words }] of [...steps.entries()].reverse()) {
    for (const word of words) places.set(word, [...(places.get(word) ?? []), { phrase: index, step }])
  }
}

/** Goes through the words once; for each phrase it remembers where its beginnings were seen last. */
function findPhrase(text: string): string | undefined {
  const seen = phrases.map(({ steps }) => steps.map(() => Number.NEGATIVE_INFINITY))
  let at = 0
  return eachWord(text.normalize('NFKC').toLowerCase().replaceAll('’', "'"), (word) => {
    at++
    for (const place of places.get(word) ?? nowhere) {
      const { steps, reason } = phrases[place.phrase] ?? nothing
      const last = seen[place.phrase] ?? []
      const before = place.step === 0 ? at : (last[place.step - 1] ?? Number.NEGATIVE_INFINITY)
      if (at - before > (steps[place.step]?.within ?? 0) + 1) continue
      last[place.step] = at
      if (place.step === steps.length - 1) return reason
    }
    return undefined
  })
}

const nowhere: readonly Place[] = []
const nothing: Phrase = { reason: '', steps: [] }

/** By hand instead of by expressions, which cost ten times as much: every tool of every server passes here. */
function eachWord(text: string, visit: (word: string) => string | undefined): string | undefined {
  for (let from = 0, at = 0; at <= text.length; at++) {
    if (at < text.length && !isGap(text.charCodeAt(at))) continue
    const found = at > from ? eachPart(text, { from, to: at }, visit) : undefined
    if (found !== undefined) return found
    from = at + 1
  }
  return undefined
}

/** An address and the name of a file with secrets count as one word each. */
function eachPart(
  text: string,
  { from, to }: { from: number; to: number },
  visit: (word: string) => string | undefined,
): string | undefined {
  const special = toSpecial(text.slice(from, Math.min(to, from + 300)))
  if (special) return visit(special)
  for (let start = from, at = from; at <= to; at++) {
    if (at < to && isWord(text.charCodeAt(at))) continue
    const found = at > start ? visit(text.slice(start, at)) : undefined
    if (found !== undefined) return found
    start = at + 1
  }
  return undefined
}

const gaps = new Set([...'"`()[]{}<>,;'].map((character) => character.charCodeAt(0)))

function isGap(code: number): boolean {
  return code <= 32 || gaps.has(code) || code === 0xa0
}

/** Letters of whatever script; signs of writing beyond ASCII stand between words like those within it. */
function isWord(code: number): boolean {
  if (code < 128) return (code >= 97 && code <= 122) || (code >= 48 && code <= 57) || code === 39
  return !(
    (code >= 0x2000 && code <= 0x206f) ||
    (code >= 0x3000 && code <= 0x303f) ||
    (code >= 0xfe00 && code <= 0xfe0f)
  )
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

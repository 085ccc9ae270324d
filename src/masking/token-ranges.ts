import { findPrivateKeys, findTokens } from './tokens.ts'

/** A range of a text, in characters. */
export type Range = { readonly start: number; readonly end: number }

/** The tokens in a well-known form and the private keys in a text. */
export function findTokenRanges(text: string): Range[] {
  const bytes = Buffer.from(text)
  const spans: number[] = []
  for (let at = 0; at < bytes.length; ) at = findPrivateKeys(bytes, at, spans)
  findTokens(bytes, 0, Number.POSITIVE_INFINITY, spans)
  const toCharacter = createPositions(bytes)
  const found = toPairs(spans).map(({ start, end }) => ({ start: toCharacter(start), end: toCharacter(end) }))
  return [...found, ...further.flatMap((form) => [...text.matchAll(form)].map(toRange))]
}

function toPairs(spans: readonly number[]): Range[] {
  return Array.from({ length: spans.length / 2 }, (_, index) => ({
    start: spans[index * 2] ?? 0,
    end: spans[index * 2 + 1] ?? 0,
  })).sort((left, right) => left.start - right.start)
}

/** Returns a function from positions in bytes to positions in characters. Cheap if the positions increase. */
function createPositions(bytes: Buffer): (at: number) => number {
  let [byte, character] = [0, 0]
  return (at) => {
    if (at < byte) [byte, character] = [0, 0]
    character += bytes.toString('utf8', byte, at).length
    byte = at
    return character
  }
}

function toRange(match: RegExpExecArray): Range {
  return { start: match.index, end: match.index + match[0].length }
}

/**
 * Forms of services that are common in server definitions. They are not searched in results, where text of people could
 * have the same form.
 */
const further: readonly RegExp[] = [
  /\bglpat-[\w-]{20,}/g,
  /\b[srp]k_(?:live|test)_[A-Za-z0-9]{16,}/g,
  /\bAIza[\w-]{35}/g,
  /\bhf_[A-Za-z0-9]{30,}/g,
  /\bnpm_[A-Za-z0-9]{36}/g,
  /\blin_api_[A-Za-z0-9]{32,}/g,
  /\b(?:ntn|secret)_[A-Za-z0-9]{40,}/g,
  /\bfig[dur]_[\w-]{30,}/g,
  /\bph[xs]_[A-Za-z0-9]{30,}/g,
  /\bdop_v1_[a-f0-9]{64}/g,
  /\bxapp-[\w-]{20,}/g,
  /\bSG\.[\w-]{16,}\.[\w-]{16,}/g,
  /\bshp(?:at|ca|pa|ss)_[a-f0-9]{32}/g,
  /\bpypi-[\w-]{50,}/g,
  /\bdckr_pat_[\w-]{20,}/g,
  /\bctx7sk-[\w-]{16,}/g,
  /\btvly-[\w-]{16,}/g,
  /\bgsk_[A-Za-z0-9]{30,}/g,
  /\bsntry[su]_[\w+/=-]{30,}/g,
]

/**
 * `*` matches any run of characters, `?` matches one character. Hand-written instead of converted to a regular
 * expression: patterns come from users, and a regular expression could take exponential time.
 */
export function matchesGlob(pattern: string, text: string): boolean {
  return text.length > shortText && pattern.includes('*') ? matchesLong(pattern, text) : matchesShort(pattern, text)
}

/** Names are shorter than this. Longer texts are arguments of calls, which an attacker may choose to make matching slow. */
const shortText = 256

function matchesShort(pattern: string, text: string): boolean {
  let p = 0
  let t = 0
  let star = -1
  let mark = 0
  while (t < text.length) {
    if (p < pattern.length && pattern[p] === '*') {
      star = p++
      mark = t
      continue
    }
    if (p < pattern.length && (pattern[p] === '?' || pattern[p] === text[t])) {
      p++
      t++
      continue
    }
    if (star === -1) return false
    p = star + 1
    t = ++mark
  }
  while (pattern[p] === '*') p++
  return p === pattern.length
}

/**
 * Finds each piece between the stars at its first occurrence. `indexOf` is fast, so long texts cannot make matching
 * slow.
 */
function matchesLong(pattern: string, text: string): boolean {
  const pieces = pattern.split('*')
  const first = pieces.shift() ?? ''
  const last = pieces.pop() ?? ''
  const end = text.length - last.length
  if (end < first.length || !matchesAt(first, text, 0) || !matchesAt(last, text, end)) return false
  let at = first.length
  for (const piece of pieces) {
    const found = findPiece(piece, text, at)
    if (found === -1 || found + piece.length > end) return false
    at = found + piece.length
  }
  return true
}

function findPiece(piece: string, text: string, from: number): number {
  if (!piece.includes('?')) return text.indexOf(piece, from)
  for (let at = from; at + piece.length <= text.length; at++) if (matchesAt(piece, text, at)) return at
  return -1
}

function matchesAt(piece: string, text: string, at: number): boolean {
  for (let index = 0; index < piece.length; index++) {
    if (piece[index] !== '?' && piece[index] !== text[at + index]) return false
  }
  return true
}

export function matchesAny(patterns: readonly string[], text: string): boolean {
  return patterns.some((pattern) => matchesGlob(pattern, text))
}

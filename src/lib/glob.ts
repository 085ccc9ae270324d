/**
 * `*` stands for any run of characters, `?` for one; everything else for itself.
 * Written out instead of made into a regular expression: patterns come from people, and this is linear in practice.
 */
export function matchesGlob(pattern: string, text: string): boolean {
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

export function matchesAny(patterns: readonly string[], text: string): boolean {
  return patterns.some((pattern) => matchesGlob(pattern, text))
}

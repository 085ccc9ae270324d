/**
 * Canonical JSON (RFC 8785): equal values give the same text, whatever the order of their keys. Members that are
 * undefined are left out. Unlike RFC 8785 it accepts a lone surrogate, because servers may send one in a definition. It
 * recurses, so the value must come from a parser that limits its depth.
 */
export function toCanonicalText(value: unknown): string {
  return toText(value) ?? 'null'
}

function toText(value: unknown): string | undefined {
  if (Array.isArray(value)) return `[${value.map(toCanonicalText).join(',')}]`
  // TOML has dates. JSON writes them as text.
  if (typeof value !== 'object' || value === null || value instanceof Date) return JSON.stringify(value)
  const members = Object.entries(value)
    .sort(([left], [right]) => (left < right ? -1 : 1))
    .flatMap(([key, member]) => {
      const text = toText(member)
      return text === undefined ? [] : [`${JSON.stringify(key)}:${text}`]
    })
  return `{${members.join(',')}}`
}

import type { JsonValue } from '../contract/json.ts'

/**
 * One text for values that clients are shown alike: the order of keys does not matter, and whatever `JSON.stringify`
 * writes in the same way is the same. The value comes from `parseJson`, which bounds its depth.
 */
export function toCanonicalText(value: JsonValue): string {
  if (Array.isArray(value)) return `[${value.map(toCanonicalText).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.keys(value)
    .sort()
    .map((key) => `${JSON.stringify(key)}:${toCanonicalText(value[key] ?? null)}`)
  return `{${members.join(',')}}`
}

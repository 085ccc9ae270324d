/** A resource address that only one server has stays as it is. If several servers have it, the server's name is added. */

const scheme = 'sallyport://'

/** Reversible. It cannot equal the address of another resource, because no server uses this scheme. */
export function toPublicUri(server: string, uri: string): string {
  return `${scheme}${server}/${encodeURIComponent(uri)}`
}

export function fromPublicUri(uri: string): { server: string; uri: string } | undefined {
  if (!uri.startsWith(scheme)) return undefined
  const slash = uri.indexOf('/', scheme.length)
  if (slash === -1) return undefined
  try {
    return { server: uri.slice(scheme.length, slash), uri: decodeURIComponent(uri.slice(slash + 1)) }
  } catch {
    return undefined
  }
}

/** Converts another address of the same server to the form of `name`: with the server's name if `name` contains it. */
export function inFormOf(name: string, uri: string): string {
  const wrapped = fromPublicUri(name)
  return wrapped ? toPublicUri(wrapped.server, uri) : uri
}

/**
 * Whether an address has no dot segments, double slashes, backslashes or needless percent-encoding. A server may accept
 * several spellings of one address, and a rule that was written for one spelling would not match the others.
 */
export function isPlainAddress(uri: string): boolean {
  const path = uri.replace(/^[^/?#]*:(\/\/)?/, '').replace(/[?#].*$/s, '')
  const segments = path.split('/')
  const doubled = segments.slice(1, -1).includes('')
  return !doubled && !segments.some(isDots) && !uri.includes('\\') && !needlesslyEncoded.test(uri)
}

const isDots = (segment: string): boolean => segment === '.' || segment === '..'
/** Percent-encoded characters that do not need the encoding. */
const needlesslyEncoded = /%(?:2[dDeE]|3[0-9]|4[1-9a-fA-F]|5[0-9aAfF]|6[1-9a-fA-F]|7[0-9aAeE])/

/**
 * Whether an address matches a template. The literal parts must occur in order. `{name}` matches text without `/`, `{+name}`
 * and the other forms match any text. There is no backtracking, so a server's template cannot cause long computation.
 */
export function matchesTemplate(template: string, uri: string): boolean {
  const parts = template.split(/(\{[^{}]*\})/)
  let at = 0
  let gap: 'none' | 'segment' | 'any' = 'none'
  for (const part of parts) {
    if (part.startsWith('{') && part.endsWith('}')) {
      gap = gap === 'any' || /^\{[+#/.;?&]/.test(part) ? 'any' : 'segment'
      continue
    }
    if (part === '') continue
    const found = gap === 'none' ? (uri.startsWith(part, at) ? at : -1) : uri.indexOf(part, at)
    if (found === -1 || (gap === 'segment' && uri.slice(at, found).includes('/'))) return false
    at = found + part.length
    gap = 'none'
  }
  const rest = uri.slice(at)
  return gap === 'none' ? rest === '' : gap === 'any' || !rest.includes('/')
}

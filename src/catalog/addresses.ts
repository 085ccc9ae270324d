/** Resource addresses of several servers at one place: kept where one server has them, told apart where several do. */

const scheme = 'sallyport://'

/** Reversible, and never the address of anything else: no server of ours speaks this scheme. */
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

/** Another address of the same server, in the form in which the caller named the first. */
export function inFormOf(name: string, uri: string): string {
  const wrapped = fromPublicUri(name)
  return wrapped ? toPublicUri(wrapped.server, uri) : uri
}

/**
 * Whether an address is spelled plainly: without dot segments, doubled slashes, backslashes or letters in disguise.
 * A server may take several spellings for one thing; a rule knows only the one it was written for.
 */
export function isPlainAddress(uri: string): boolean {
  const path = uri.replace(/^[^/?#]*:(\/\/)?/, '').replace(/[?#].*$/s, '')
  const segments = path.split('/')
  const doubled = segments.slice(1, -1).includes('')
  return !doubled && !segments.some(isDots) && !uri.includes('\\') && !disguised.test(uri)
}

const isDots = (segment: string): boolean => segment === '.' || segment === '..'
/** Characters that need no percent sign, written with one. */
const disguised = /%(?:2[dDeE]|3[0-9]|4[1-9a-fA-F]|5[0-9aAfF]|6[1-9a-fA-F]|7[0-9aAeE])/

/**
 * Whether an address has the form of a template. The literal parts must follow each other in order; `{name}` stands for
 * text without `/`, `{+name}` and the other forms for any text. Walks once, so that no pattern can keep it busy.
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

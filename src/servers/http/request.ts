export type HttpRequest = {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** Path and query, as in the request line. */
  readonly path: string
  /** Header names are in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Buffer
}

const token = /^[!#$%&'*+.^_`|~0-9a-z-]+$/
const fieldValue = /^[\t\x20-\x7e\x80-\xff]*$/
const target = /^\/[\x21-\x7e]*$/

/** Headers that frame the message or control the socket: only this client writes them. */
const reservedHeaders: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'expect',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** The head of a request as latin1 text. Undefined if a value could be read as a second request. */
export function toHead({ method, path, headers, body }: HttpRequest, host: string): string | undefined {
  if (!target.test(path)) return undefined
  let head = `${method} ${path} HTTP/1.1\r\nconnection: keep-alive\r\n`
  if (headers.host === undefined) head += `host: ${host}\r\n`
  for (const name in headers) {
    const value = headers[name] ?? ''
    if (!token.test(name) || reservedHeaders.has(name) || !fieldValue.test(value)) return undefined
    head += `${name}: ${value}\r\n`
  }
  if (body) head += `content-length: ${body.length}\r\n`
  return `${head}\r\n`
}

/** Lower-case names, so that a header of a request replaces a configured header. */
export function toLowerNames(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
}

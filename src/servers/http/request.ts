export type HttpRequest = {
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** As in the first line: path and query. */
  readonly path: string
  /** By names in small letters. */
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Buffer
}

const token = /^[!#$%&'*+.^_`|~0-9a-z-]+$/
const fieldValue = /^[\t\x20-\x7e\x80-\xff]*$/
const target = /^\/[\x21-\x7e]*$/

/** Those that say where a message ends or what becomes of the connection are ours to write. */
const ours: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'expect',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/** The head of a request, as latin1 text; undefined for what would make two requests out of one. */
export function toHead({ method, path, headers, body }: HttpRequest, host: string): string | undefined {
  if (!target.test(path)) return undefined
  let head = `${method} ${path} HTTP/1.1\r\nconnection: keep-alive\r\n`
  if (headers.host === undefined) head += `host: ${host}\r\n`
  for (const name in headers) {
    const value = headers[name] ?? ''
    if (!token.test(name) || ours.has(name) || !fieldValue.test(value)) return undefined
    head += `${name}: ${value}\r\n`
  }
  if (body) head += `content-length: ${body.length}\r\n`
  return `${head}\r\n`
}

/** Names in small letters, so that what is set later takes the place of what is configured. */
export function toLowerNames(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
}

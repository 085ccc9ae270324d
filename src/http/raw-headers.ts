import type { IncomingMessage } from 'node:http'

/** All values of a header. Node joins or drops repeated headers, and a proxy may have used another one of them. */
export function valuesOf(request: IncomingMessage, name: string): string[] {
  const { rawHeaders } = request
  const values: string[] = []
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const key = rawHeaders[index] ?? ''
    if (key.length === name.length && key.toLowerCase() === name) values.push(rawHeaders[index + 1] ?? '')
  }
  return values
}

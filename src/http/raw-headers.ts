import type { IncomingMessage } from 'node:http'

/** Every value of a header as it came: where there are two, a proxy before us may have gone by the other one. */
export function valuesOf(request: IncomingMessage, name: string): string[] {
  const { rawHeaders } = request
  const values: string[] = []
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const key = rawHeaders[index] ?? ''
    if (key.length === name.length && key.toLowerCase() === name) values.push(rawHeaders[index + 1] ?? '')
  }
  return values
}

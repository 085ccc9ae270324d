import { connect, type Socket } from 'node:net'
import type { Principal } from '../../src/contract/principal.ts'
import { poll, type TestGateway } from './gateway.ts'

/** Writes all requests to one socket without waiting for answers. The answers are not read. */
export async function pipeline(gateway: Pick<TestGateway, 'url'>, requests: readonly string[]): Promise<Socket> {
  const { hostname, port } = new URL(gateway.url)
  const socket = connect(Number(port), hostname)
  socket.on('error', () => {})
  await new Promise((resolve) => socket.on('connect', resolve))
  socket.pause()
  for (const request of requests) socket.write(request)
  return socket
}

export type RawRequest = {
  readonly method: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** The text of an HTTP request. */
export function toText(
  { url }: Pick<TestGateway, 'url'>,
  { method, path, headers = {}, body = '' }: RawRequest,
): string {
  const length = body === '' ? {} : { 'content-length': String(Buffer.byteLength(body)) }
  const lines = Object.entries({ host: new URL(url).host, ...headers, ...length })
  return `${method} ${path} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${body}`
}

/** The buffered bytes that count for an agent. */
export function bufferedFor({ gateway }: TestGateway, name = 'agent'): number {
  const principal: Principal = { kind: 'agent', name }
  return gateway.calls.accountOf(principal).buffered()
}

/** Starts reading the socket and returns the status of the next answer. */
export async function statusOf(socket: Socket): Promise<string> {
  let text = ''
  socket.on('data', (chunk) => {
    text += chunk
  })
  socket.resume()
  return poll(() => /^HTTP\/1.1 (\d+)/.exec(text)?.[1])
}

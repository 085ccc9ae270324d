import type { IncomingMessage } from 'node:http'
import { GatewayError } from '../contract/errors.ts'

/** A bounded body. What is too large is not kept. */
export async function readBody(request: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const type = request.headers['content-type'] ?? ''
  if (!/^application\/json\s*(;|$)/i.test(type)) {
    throw new GatewayError('request-invalid', 'The body must be sent as `Content-Type: application/json`')
  }
  if (request.headers['content-encoding'] !== undefined) {
    throw new GatewayError('request-invalid', 'Compressed bodies are not taken')
  }
  const tooLarge = () => new GatewayError('request-too-large', `The body has more than ${maxBytes} bytes`)
  if (Number(request.headers['content-length'] ?? 0) > maxBytes) throw tooLarge()
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const chunks: Buffer[] = []
  let bytes = 0
  request.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > maxBytes) return reject(tooLarge())
    chunks.push(chunk)
  })
  request.on('end', () => resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks)))
  request.on('error', (error) =>
    reject(new GatewayError('request-invalid', 'The request broke off', {}, { cause: error })),
  )
  return promise
}

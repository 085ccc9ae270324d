import type { IncomingMessage } from 'node:http'
import { GatewayError } from '../contract/errors.ts'
import type { Delivery } from '../lib/delivery.ts'
import { createPieces } from '../lib/pieces.ts'

/**
 * A bounded body. What is too large is not kept. Its bytes are counted for the principal: at once if the length is
 * announced, or as they come.
 */
export async function readBody(
  request: IncomingMessage,
  maxBytes: number,
  delivery: Pick<Delivery, 'takeRequest'>,
): Promise<Buffer> {
  const type = request.headers['content-type'] ?? ''
  if (!/^application\/json\s*(;|$)/i.test(type)) {
    throw new GatewayError('request-invalid', 'The body must be sent as `Content-Type: application/json`')
  }
  if (request.headers['content-encoding'] !== undefined) {
    throw new GatewayError('request-invalid', 'Compressed bodies are not taken')
  }
  const tooLarge = () => new GatewayError('request-too-large', `The body has more than ${maxBytes} bytes`)
  const announced = Number(request.headers['content-length'] ?? 0)
  if (announced > maxBytes) throw tooLarge()
  delivery.takeRequest(announced)
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const pieces = createPieces()
  request.on('data', (chunk: Buffer) => {
    if (pieces.bytes() + chunk.length > maxBytes) return reject(tooLarge())
    try {
      if (announced === 0) delivery.takeRequest(chunk.length)
      pieces.add(chunk)
    } catch (error) {
      reject(error)
    }
  })
  request.on('end', () => resolve(pieces.take()))
  request.on('error', (error) =>
    reject(new GatewayError('request-invalid', 'The request broke off', {}, { cause: error })),
  )
  return promise
}

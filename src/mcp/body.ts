import type { IncomingMessage } from 'node:http'
import { GatewayError } from '../contract/errors.ts'
import { readBytes } from '../lib/body.ts'
import type { Delivery } from '../lib/delivery.ts'

/** The body of a message. Its bytes are counted for the principal. */
export async function readBody(
  request: IncomingMessage,
  mostBytes: number,
  delivery: Pick<Delivery, 'takeRequest'>,
): Promise<Buffer> {
  const type = request.headers['content-type'] ?? ''
  if (!/^application\/json\s*(;|$)/i.test(type)) {
    throw new GatewayError('request-invalid', 'The body must be sent as `Content-Type: application/json`')
  }
  if (request.headers['content-encoding'] !== undefined) {
    throw new GatewayError('request-invalid', 'Compressed request bodies are not supported')
  }
  return readBytes(request, { mostBytes, take: delivery.takeRequest })
}

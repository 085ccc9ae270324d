import type { IncomingMessage } from 'node:http'
import { GatewayError } from '../contract/errors.ts'
import { createPieces } from './pieces.ts'

export type BodyLimits = {
  readonly mostBytes: number
  /** Counts the bytes: all at once if the request states its length, otherwise as they arrive. Throws if there is no room. */
  take?(bytes: number): void
}

/**
 * The body of a request, up to a limit. It listens to events because leaving an iteration early would destroy the
 * socket, and the answer that names the reason would be lost.
 */
export async function readBytes(request: IncomingMessage, { mostBytes, take }: BodyLimits): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const tooLarge = () => new GatewayError('request-too-large', `The body is larger than ${mostBytes} bytes`)
  const announced = Number(request.headers['content-length'] ?? 0)
  if (announced > mostBytes) throw tooLarge()
  take?.(announced)
  const pieces = createPieces()
  request.on('data', (chunk: Buffer) => {
    if (pieces.bytes() + chunk.length > mostBytes) return reject(tooLarge())
    try {
      if (announced === 0) take?.(chunk.length)
      pieces.add(chunk)
    } catch (error) {
      reject(error)
    }
  })
  request.on('end', () => resolve(pieces.take()))
  const brokeOff = (cause?: unknown) =>
    reject(new GatewayError('request-invalid', 'The connection closed before the body was complete', {}, { cause }))
  request.on('error', brokeOff)
  request.on('close', () => brokeOff())
  return promise
}

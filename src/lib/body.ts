import type { IncomingMessage } from 'node:http'
import { GatewayError } from '../contract/errors.ts'
import { createPieces } from './pieces.ts'

export type BodyLimits = {
  readonly mostBytes: number
  /**
   * Reserves the bytes: all at once if the request has a content-length, otherwise as they arrive. Throws if there is
   * no room.
   */
  take?(bytes: number): void
}

/**
 * Reads the body of a request, up to `mostBytes`. It uses events instead of an iterator: ending the iteration early
 * would destroy the socket, and the error response could not be sent.
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
  let whole = false
  request.on('end', () => {
    whole = true
    resolve(pieces.take())
  })
  const closedEarly = (cause?: unknown) =>
    reject(new GatewayError('request-invalid', 'The connection closed before the body was complete', {}, { cause }))
  request.on('error', closedEarly)
  // Every request closes, also a complete one. An error is made only if it is needed, because its stack is expensive.
  request.on('close', () => void (whole || closedEarly()))
  return promise
}

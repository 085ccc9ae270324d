import type { Dispatcher, Pool } from 'undici'
import { GatewayError } from '../contract/errors.ts'
import { createSseReader } from '../wire/sse.ts'
import { toLinkError, toStatusError } from './http-errors.ts'

type StreamParts = {
  readonly maxBytes: number
  readonly signal: AbortSignal
  onOpen(): void
  onEvent(event: { event: string; data: Buffer }): void
  /** `refused` is the status with which the server declined, if it did. */
  onEnd(refused: GatewayError | undefined, error?: GatewayError): void
}

/** A long GET that carries events until one side ends it. */
export function openStream(pool: Pool, path: string, headers: Record<string, string>, parts: StreamParts): void {
  let controller: Dispatcher.DispatchController | undefined
  let refused: GatewayError | undefined
  let ended = false
  const onAbort = () => controller?.abort(new Error('The stream is closed'))
  const end = (error?: GatewayError) => {
    if (ended) return
    ended = true
    parts.signal.removeEventListener('abort', onAbort)
    if (!parts.signal.aborted) parts.onEnd(refused, error)
  }
  const reader = createSseReader({
    maxBytes: parts.maxBytes,
    onEvent: parts.onEvent,
    onTooLong: () => controller?.abort(new GatewayError('result-too-large', 'An event has no end')),
  })
  pool.dispatch(
    { path, method: 'GET', headers },
    {
      onRequestStart(started) {
        controller = started
        if (parts.signal.aborted) return onAbort()
        parts.signal.addEventListener('abort', onAbort, { once: true })
      },
      onResponseStart(_controller, status, received) {
        const type = String(received['content-type'] ?? '').toLowerCase()
        if (status === 200 && type.startsWith('text/event-stream')) return parts.onOpen()
        refused = toStatusError(status, received, false)
        onAbort()
      },
      onResponseData: (_controller, chunk) => reader.push(chunk),
      onResponseEnd: () => end(),
      onResponseError: (_controller, error) => end(toLinkError(error, false)),
    },
  )
}

import { GatewayError } from '../../contract/errors.ts'
import { onAbort } from '../../lib/signals.ts'
import { createSseReader, type StreamPlace } from '../../wire/sse.ts'
import type { HttpClient } from '../http/client.ts'
import { toLinkError, toStatusError } from '../http/errors.ts'

type StreamParts = {
  readonly maxBytes: number
  readonly signal: AbortSignal
  onOpen(): void
  /** Only events with data. Events without data only update the place. */
  onEvent(event: { event: string; data: Buffer }): void
  onPlace?(place: StreamPlace): void
  /** `refused` is the error of a server that declined the stream. */
  onEnd(refused: GatewayError | undefined, error?: GatewayError): void
}

/** A long GET that carries events until one side ends it. */
export function openStream(
  client: HttpClient,
  path: string,
  headers: Record<string, string>,
  parts: StreamParts,
): void {
  let refused: GatewayError | undefined
  let ended = false
  let abort = (_error: Error) => {}
  const stop = () => abort(new Error('The stream is closed'))
  const end = (error?: GatewayError) => {
    if (ended) return
    ended = true
    unlink()
    if (!parts.signal.aborted) parts.onEnd(refused, error)
  }
  const reader = createSseReader({
    maxBytes: parts.maxBytes,
    onEvent: (event) => event.data.length > 0 && parts.onEvent(event),
    onPlace: (place) => parts.onPlace?.(place),
    onTooLong: () => abort(new GatewayError('result-too-large', `An event has more than ${parts.maxBytes} bytes`)),
  })
  if (parts.signal.aborted) return
  const unlink = onAbort(parts.signal, stop)
  abort = client.send(
    { method: 'GET', path, headers },
    {
      onStart() {},
      onHead(status, received) {
        const type = received.get('content-type')?.toLowerCase()
        if (status === 200 && type?.startsWith('text/event-stream')) return parts.onOpen()
        refused = toStatusError(status, received, false)
        stop()
      },
      onData: (chunk) => reader.push(Buffer.from(chunk)),
      onEnd: () => end(),
      onError: (error) => end(toLinkError(error, false)),
    },
  )
}

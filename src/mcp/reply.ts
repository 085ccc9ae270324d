import type { IncomingMessage, ServerResponse } from 'node:http'
import type { JsonObject } from '../contract/json.ts'
import type { Clock } from '../lib/clock.ts'
import type { Delivery } from '../lib/delivery.ts'
import { toOneLine } from '../wire/lines.ts'
import { sseKeepAlive, toSseEvent } from '../wire/sse.ts'

/** The answer to one POST: JSON, or a stream of events if messages are sent before the answer. */
export type Reply = {
  /** Whether messages can be sent before the answer. */
  readonly streams: boolean
  /** Sends a notification before the answer. It is lost if the client accepts only JSON or does not read. */
  notify(method: string, params: JsonObject): void
  /** Like `notify`, for any message. Returns whether it was sent. */
  say(message: JsonObject): boolean
  /** Sends the answer, whole or in pieces. Throws `limit-exceeded` if too many bytes are unread. */
  answer(message: Buffer | readonly Buffer[], status?: number): void
  /** The answer is a stream that the caller of this function writes and ends. */
  stream(): ServerResponse
  /** Calls back when the client disconnects; the returned function removes the listener. */
  onGone(listener: () => void): () => void
  isGone(): boolean
  /** An empty answer: to a notification, or to a cancelled request. */
  nothing(): void
}

const smallAnswer = 16 * 1024
const streamAfterMs = 10_000
export const keepAliveMs = 15_000

export type ReplyParts = {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly delivery: Delivery
  readonly clock: Clock
}

export function createReply({ request, response, delivery, clock }: ReplyParts): Reply {
  const takesEvents = request.headers.accept?.includes('text/event-stream') ?? false
  const watching = new Set<() => void>()
  const tellGone = () => {
    for (const listener of watching) listener()
  }
  let streaming = false
  let cancel = takesEvents ? clock.after(streamAfterMs, keepAlive) : () => {}

  /** Clients and proxies treat a long silence as a dead connection. */
  function keepAlive(): void {
    if (!open()) return
    delivery.write(sseKeepAlive)
    cancel = clock.after(keepAliveMs, keepAlive)
  }

  function open(): boolean {
    if (response.destroyed || response.writableEnded) return false
    if (!streaming) startStream(response)
    streaming = true
    return true
  }

  function say(message: JsonObject): boolean {
    if (!takesEvents || !open()) return false
    return delivery.write(toSseEvent(JSON.stringify(message)))
  }

  function write(pieces: readonly Buffer[], length: number, status: number): void {
    if (streaming) return void response.end(toSseEvent(toOneLine(Buffer.concat(pieces))))
    response.writeHead(status, { 'content-type': 'application/json', 'content-length': length })
    // As text, a small body is sent in one write with its headers; latin1 keeps every byte.
    if (length <= smallAnswer) return void response.end(toLatin1(pieces), 'latin1')
    for (const piece of pieces) response.write(piece)
    response.end()
  }

  return {
    streams: takesEvents,
    notify: (method, params) => void say({ jsonrpc: '2.0', method, params }),
    say,
    answer(message, status = 200) {
      cancel()
      if (response.destroyed || response.writableEnded) return
      const pieces = Buffer.isBuffer(message) ? [message] : message
      const length = pieces.reduce((sum, piece) => sum + piece.length, 0)
      delivery.takeAnswer(length)
      write(pieces, length, status)
      delivery.settle()
    },
    stream() {
      cancel()
      startStream(response)
      return response
    },
    onGone(listener) {
      if (watching.size === 0) response.on('close', tellGone)
      watching.add(listener)
      return () => {
        watching.delete(listener)
        if (watching.size === 0) response.off('close', tellGone)
      }
    },
    isGone: () => response.destroyed,
    nothing() {
      cancel()
      if (response.destroyed || response.writableEnded) return
      if (!streaming) response.writeHead(202, { 'content-length': 0 })
      response.end()
    },
  }
}

function toLatin1(pieces: readonly Buffer[]): string {
  let text = ''
  for (const piece of pieces) text += piece.toString('latin1')
  return text
}

export function startStream(response: ServerResponse): void {
  response.writeHead(200, {
    'content-type': 'text/event-stream',
    'cache-control': 'no-cache, no-transform',
    'x-accel-buffering': 'no',
  })
}

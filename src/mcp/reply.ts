import type { IncomingMessage, ServerResponse } from 'node:http'
import type { JsonObject } from '../contract/json.ts'
import type { Clock } from '../lib/clock.ts'
import type { Delivery } from '../lib/delivery.ts'
import { toOneLine } from '../wire/lines.ts'
import { sseKeepAlive, toSseEvent } from '../wire/sse.ts'

/** The one answer to one POST: JSON if nothing else has to be said before it, a stream of events otherwise. */
export type Reply = {
  /** Whether anything can be said before the answer. */
  readonly streams: boolean
  /** Said before the answer; lost on a client that takes only JSON, or that does not read. */
  notify(method: string, params: JsonObject): void
  /** As `notify`, for any message; tells whether it went out. */
  say(message: JsonObject): boolean
  /** The message, whole or in pieces that follow each other. Throws `limit-exceeded` when too much is unread. */
  answer(message: Buffer | readonly Buffer[], status?: number): void
  /** The answer is a stream that lasts, and whoever asked for it writes and ends it. */
  stream(): ServerResponse
  /** Whoever waited for the answer has hung up; the returned function stops looking. */
  onGone(listener: () => void): () => void
  isGone(): boolean
  /** Nothing to say: the request was a notification, or its caller took it back. */
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

  /** A long silence looks like a dead server to clients and proxies between us. */
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
    // As text, a small body leaves in one write with its headers; latin1 keeps every byte as it is.
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

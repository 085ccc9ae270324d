import type { ServerResponse } from 'node:http'
import { GatewayError } from '../contract/errors.ts'
import type { Clock } from './clock.ts'

/** The bytes that are buffered for one principal: its requests, and the answers that its clients have not read. */
export type Account = {
  buffered(): number
  /** An account with little in it has room for a message of any size. */
  hasRoom(bytes: number): boolean
  /** A negative number gives bytes back. */
  add(bytes: number): void
}

/** One response on its way to a client that may read slowly, or not at all. */
export type Delivery = {
  /** Counts the bytes of the request; throws `limit-exceeded` when too much is buffered already. */
  takeRequest(bytes: number): void
  /** Counts an answer before it is written, unless the place of a call counts it; throws `limit-exceeded`. */
  takeAnswer(bytes: number): void
  /** Calls the listener once the answer has left completely or its connection is closed; at once if that was before. */
  onEnd(listener: () => void): void
  /** Writes a part of a stream. False when the client has too much unread, or has left: nothing was written then. */
  write(text: string | Buffer): boolean
  /** Closes the connection unless the returned function is called before a client had time to read so many bytes. */
  expectReading(bytes: number): () => void
  /** The answer was written. Ends the delivery if the client's socket took all of it, and waits for that if not. */
  settle(): void
}

export type DeliveryParts = {
  readonly response: ServerResponse
  readonly account: Account
  readonly clock: Clock
  /** Milliseconds for which a client may read nothing. */
  readonly patience: number
  /** Called when a connection is closed because its client does not read. */
  onStalled?(): void
}

/** Answers of this size are always written: an error must get through. */
const smallAnswer = 16 * 1024
/** What one stream may have unread. */
const mostOfStream = 1024 * 1024
/** Of a stream whose client has read everything so far, parts of this size are always written. */
const smallPart = 64 * 1024
/** Bytes per millisecond that a client must read of a large answer on average. */
const slowestRate = 64
/** Unread bytes by socket: pipelined answers leave one after the other. */
const unreadOf = new WeakMap<object, number>()

export function createDelivery({ response, account, clock, patience, onStalled }: DeliveryParts): Delivery {
  const listeners: (() => void)[] = []
  let counted = 0
  let streamed = 0
  let lastProgress = 0
  let listens = false
  let watched = false
  let ended = false

  function end(): void {
    if (ended) return
    ended = true
    account.add(-counted)
    for (const listener of listeners) listener()
  }

  function take(bytes: number): void {
    if (!account.hasRoom(bytes)) throw full()
    count(bytes)
  }

  function count(bytes: number): void {
    if (ended) return
    counted += bytes
    account.add(bytes)
  }

  function fits(bytes: number): boolean {
    if (streamed === 0 && bytes <= smallPart) return true
    return (streamed === 0 || streamed + bytes <= mostOfStream) && account.hasRoom(bytes)
  }

  function close(): void {
    onStalled?.()
    response.req.socket.destroy()
  }

  function expectReading(bytes: number): () => void {
    return clock.after(patience + bytes / slowestRate, close)
  }

  /** The socket has not taken everything: the client gets the time that a slow connection needs. */
  function waitForReader(): void {
    watched = true
    const { socket } = response.req
    const bytes = response.writableLength
    if (listeners.length === 0) count(Math.max(0, bytes - counted))
    const unread = (unreadOf.get(socket) ?? 0) + bytes
    unreadOf.set(socket, unread)
    const cancel = expectReading(unread)
    listeners.push(() => {
      cancel()
      unreadOf.set(socket, (unreadOf.get(socket) ?? 0) - bytes)
    })
  }

  return {
    takeRequest: take,
    takeAnswer(bytes) {
      if (bytes > smallAnswer && listeners.length === 0) take(bytes)
    },
    onEnd(listener) {
      if (ended || response.destroyed) return listener()
      listeners.push(listener)
    },
    write(text) {
      if (ended || response.destroyed || response.writableEnded) return false
      const now = clock.monotonic()
      const stalled = streamed > 0 && now - lastProgress > patience
      if (stalled) close()
      const bytes = text.length
      if (stalled || !fits(bytes)) return false
      if (streamed === 0) lastProgress = now
      streamed += bytes
      count(bytes)
      response.write(text, () => {
        lastProgress = clock.monotonic()
        streamed -= bytes
        count(-bytes)
      })
      return true
    },
    expectReading,
    settle() {
      if (ended) return
      if (response.destroyed || (response.writableEnded && response.writableLength === 0)) return end()
      if (response.writableEnded && !watched) waitForReader()
      if (!listens) response.on('close', end)
      listens = true
    },
  }
}

/** For answers to whoever is not known: they are small, or all share the same bytes. */
export const unboundedAccount: Account = { buffered: () => 0, hasRoom: () => true, add() {} }

function full(): GatewayError {
  const message =
    'Too much is buffered for this principal: requests under way and answers that its clients have not read'
  return new GatewayError('limit-exceeded', message, { limit: 'buffered', retryAfter: 1 })
}

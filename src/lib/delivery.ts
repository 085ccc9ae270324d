import type { ServerResponse } from 'node:http'
import { GatewayError } from '../contract/errors.ts'
import type { Clock } from './clock.ts'

/** The bytes that are buffered for one principal: its requests, and the answers that its clients have not read yet. */
export type Account = {
  buffered(): number
  /** True for a message of any size while only little is buffered. */
  hasRoom(bytes: number): boolean
  /** A negative number releases bytes. */
  add(bytes: number): void
}

/** Sends one response to a client that may read slowly or not at all. */
export type Delivery = {
  /** Adds the bytes of the request to the account. Throws `limit-exceeded` if too much is buffered already. */
  takeRequest(bytes: number): void
  /**
   * Adds the bytes of an answer before it is written, unless an `onEnd` listener accounts for them. Throws
   * `limit-exceeded`.
   */
  takeAnswer(bytes: number): void
  /**
   * Calls the listener once the answer is sent completely or its socket is closed. Calls it at once if that has
   * happened.
   */
  onEnd(listener: () => void): void
  /**
   * Writes a part of a stream. Returns false and writes nothing if the client has too many unread bytes or has
   * disconnected.
   */
  write(text: string | Buffer): boolean
  /** Closes the socket unless the returned function is called within the time that a slow client needs to read `bytes`. */
  expectReading(bytes: number): () => void
  /** Call it after the answer was written. The delivery ends once the client's socket has taken all bytes. */
  settle(): void
}

export type DeliveryParts = {
  readonly response: ServerResponse
  readonly account: Account
  readonly clock: Clock
  /** Milliseconds after which a client that reads nothing is disconnected. */
  readonly patience: number
  /** Called when a socket is closed because its client does not read. */
  onStalled?(): void
}

/** Answers up to this size are always written, so that an error reaches the client. */
const smallAnswer = 16 * 1024
/** The most bytes of one stream that a client may leave unread. */
const mostOfStream = 1024 * 1024
/** Parts up to this size are always written if the client has read everything before. */
const smallPart = 64 * 1024
/** The average rate, in bytes per millisecond, at which a client must read a large answer. */
const slowestRate = 64
/** Unread bytes by socket, because pipelined answers on one socket are sent one after the other. */
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

  /** Gives the client the time that a slow connection needs to read the rest. */
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

/** For answers to unauthenticated callers. These answers are small or share the same bytes. */
export const unboundedAccount: Account = { buffered: () => 0, hasRoom: () => true, add() {} }

function full(): GatewayError {
  const message =
    'Too many bytes are buffered for this principal: open requests and answers that its clients have not read'
  return new GatewayError('limit-exceeded', message, { limit: 'buffered', retryAfter: 1 })
}

import type { Socket } from 'node:net'
import { GatewayError } from '../../contract/errors.ts'
import type { Clock } from '../../lib/clock.ts'
import { connectGuarded, type EgressRules, type Origin } from './egress.ts'
import { type HttpRequest, toHead } from './request.ts'
import { createResponseReader, type ResponseHead, type ResponseHeaders } from './response.ts'

/** Hears what becomes of one request: a head, its body, and either `onEnd` or `onError` at last. */
export type HttpHandler = {
  /** From now on the server may have seen something of it. */
  onStart(): void
  onHead(status: number, headers: ResponseHeaders): void
  /** The bytes are lent: whoever keeps them makes a copy. */
  onData(chunk: Buffer): void
  onEnd(): void
  onError(error: unknown): void
}

export type HttpClient = {
  /** The function that is given back ends the exchange, and with it the connection that carries it. */
  send(request: HttpRequest, handler: HttpHandler): (error: Error) => void
  close(): Promise<void>
}

type ClientParts = {
  readonly url: URL
  readonly egress: EgressRules
  readonly connectTimeoutMs: number
  readonly clock: Clock
}

type Job = {
  readonly head: string | undefined
  readonly body: Buffer | undefined
  readonly handler: HttpHandler
  on: Connection | undefined
  ended: boolean
}

type Connection = {
  readonly socket: Socket
  /** Until when the server keeps it open for another request. */
  idleUntil: number
  start(job: Job): void
  receive(bytes: Buffer): void
  fail(error: unknown): void
}

const maxConnections = 128
const maxWaiting = 4096
/** For servers that do not say how long they keep an idle connection. */
const idleMs = 4000
const maxIdleMs = 600_000
/** A request must not meet a server that is just closing the connection. */
const idleMarginMs = 1000
/** Above this it is cheaper to hand over head and body apart than to copy the body. */
const maxJoined = 64 * 1024

/** HTTP/1.1 towards one server: connections that stay open, one request at a time on each, written in one piece. */
export function createHttpClient({ url, egress, connectTimeoutMs, clock }: ClientParts): HttpClient {
  const secure = url.protocol === 'https:'
  const origin: Origin = { host: url.hostname, port: Number(url.port || (secure ? 443 : 80)), secure }
  const closing = new AbortController()
  const open = new Set<Connection>()
  const waiting = new Set<Job>()
  let idle: Connection[] = []
  let opening = 0
  let sweeping = false

  return {
    send(request, handler) {
      const head = toHead(request, url.host)
      const job: Job = { head, body: request.body, handler, on: undefined, ended: false }
      if (closing.signal.aborted) end(job, closedError())
      else if (head === undefined) end(job, invalidError())
      else if (waiting.size >= maxWaiting) end(job, crowdedError())
      else place(job)
      return (error) => {
        if (job.on) return job.on.fail(error)
        waiting.delete(job)
        end(job, error)
      }
    },
    async close() {
      closing.abort(closedError())
      for (const job of waiting) end(job, closedError())
      waiting.clear()
      for (const { fail } of open) fail(closedError())
    },
  }

  function place(job: Job): void {
    const connection = findIdle()
    if (connection) return connection.start(job)
    waiting.add(job)
    grow()
  }

  function findIdle(): Connection | undefined {
    const now = clock.monotonic()
    for (let connection = idle.pop(); connection; connection = idle.pop()) {
      if (connection.idleUntil > now) return connection
      connection.socket.destroy()
    }
    return undefined
  }

  /** As many as wait: each of them would otherwise wait for somebody else's answer. */
  function grow(): void {
    while (opening < waiting.size && opening + open.size < maxConnections) openOne()
  }

  function openOne(): void {
    let connection: Connection | undefined
    let spoken = false
    const onBytes = (bytes: Buffer) => {
      spoken = true
      connection?.receive(bytes)
    }
    opening++
    connectGuarded(origin, egress, { timeoutMs: connectTimeoutMs, clock, signal: closing.signal, onBytes }).then(
      (socket) => {
        opening--
        if (closing.signal.aborted) return void socket.destroy()
        if (spoken) socket.destroy() // before anybody asked
        if (socket.destroyed) return failFirst(brokenError('The connection was closed'))
        connection = createConnection(socket)
        free(connection)
      },
      (error: unknown) => {
        opening--
        failFirst(error)
      },
    )
  }

  function failFirst(error: unknown): void {
    const [first] = waiting
    if (first) waiting.delete(first)
    if (first) end(first, error)
    grow()
  }

  function free(connection: Connection): void {
    const [next] = waiting
    if (next) {
      waiting.delete(next)
      return connection.start(next)
    }
    idle.push(connection)
    if (!sweeping) sweep()
  }

  /** One timer for all that are idle. */
  function sweep(): void {
    sweeping = idle.length > 0
    if (!sweeping) return
    clock.after(idleMs, () => {
      const now = clock.monotonic()
      const late = idle.filter(({ idleUntil }) => idleUntil <= now)
      idle = idle.filter(({ idleUntil }) => idleUntil > now)
      for (const { socket } of late) socket.destroy()
      sweep()
    })
  }

  function createConnection(socket: Socket): Connection {
    let job: Job | undefined
    let keptText: string | undefined
    let keptMs = idleMs
    const reader = createResponseReader({
      onHead({ status, headers }: ResponseHead) {
        const text = headers.get('keep-alive')
        if (text !== keptText) keptMs = toIdleMs(text)
        keptText = text
        job?.handler.onHead(status, headers)
      },
      onData: (chunk) => job?.handler.onData(chunk),
      onEnd(clean) {
        const done = leave()
        // A server that answers before it has read the whole request may never read the rest.
        const reusable = clean && keptMs > 0 && !socket.destroyed && socket.writableLength === 0
        connection.idleUntil = clock.monotonic() + keptMs
        if (reusable) free(connection)
        else drop()
        done?.handler.onEnd()
      },
      onError: fail,
    })
    const idleUntil = clock.monotonic() + idleMs
    const connection: Connection = { socket, idleUntil, start, receive: reader.push, fail }
    open.add(connection)
    socket.on('end', () => {
      if (!reader.finish()) fail(brokenError('The server closed the connection'))
    })
    socket.on('error', fail)
    socket.on('close', () => fail(brokenError('The connection was closed')))
    return connection

    function start(next: Job): void {
      job = next
      next.on = connection
      next.handler.onStart()
      if (next.ended) return
      reader.expect()
      write(next)
    }

    function write({ head = '', body }: Job): void {
      if (!body) return void socket.write(head, 'latin1')
      if (body.length > maxJoined) {
        socket.cork()
        socket.write(head, 'latin1')
        socket.write(body)
        return socket.uncork()
      }
      const whole = Buffer.allocUnsafe(head.length + body.length)
      whole.write(head, 0, 'latin1')
      body.copy(whole, head.length)
      socket.write(whole)
    }

    function leave(): Job | undefined {
      const left = job
      job = undefined
      if (left) left.on = undefined
      if (left?.ended) return undefined
      if (left) left.ended = true
      return left
    }

    function drop(): void {
      reader.stop()
      open.delete(connection)
      idle = idle.filter((other) => other !== connection)
      socket.destroy()
    }

    function fail(error: unknown): void {
      const failed = leave()
      if (open.has(connection)) drop()
      failed?.handler.onError(error)
      if (!closing.signal.aborted) grow()
    }
  }

  function end(job: Job, error: unknown): void {
    if (job.ended) return
    job.ended = true
    job.handler.onError(error)
  }
}

/** `timeout=5`: how long a server keeps an idle connection, less what is on its way. */
function toIdleMs(text: string | undefined): number {
  const seconds = /(?:^|[ ,])timeout=(\d{1,9})/i.exec(text ?? '')?.[1]
  if (seconds === undefined) return idleMs
  return Math.min(maxIdleMs, Number(seconds) * 1000 - idleMarginMs)
}

function closedError(): GatewayError {
  return new GatewayError('server-unavailable', 'The connection is being closed')
}

function crowdedError(): GatewayError {
  return new GatewayError('limit-exceeded', 'Too many requests wait for this server', {}, { reach: 'unsent' })
}

function invalidError(): GatewayError {
  const message = 'The address or the headers of the server hold what cannot be sent'
  return new GatewayError('connect-failed', message, {}, { reach: 'unsent' })
}

function brokenError(message: string): Error {
  return Object.assign(new Error(message), { code: 'ECONNRESET' })
}

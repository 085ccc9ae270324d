import type { Socket } from 'node:net'
import { GatewayError } from '../../contract/errors.ts'
import type { Clock } from '../../lib/clock.ts'
import { connectGuarded, type EgressRules, type Origin } from './egress.ts'
import { type HttpRequest, toHead } from './request.ts'
import { createResponseReader, type ResponseHead, type ResponseHeaders } from './response.ts'

/** Receives the events of one request: the head, the body, and finally either `onEnd` or `onError`. */
export type HttpHandler = {
  /** The request is being written: from here on the server may have received a part of it. */
  onStart(): void
  onHead(status: number, headers: ResponseHeaders): void
  /** The buffer is reused after the call. Copy the bytes to keep them. */
  onData(chunk: Buffer): void
  onEnd(): void
  onError(error: unknown): void
}

export type HttpClient = {
  /** Returns a function that aborts the exchange and closes its socket. */
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
  on: PooledSocket | undefined
  ended: boolean
}

type PooledSocket = {
  readonly socket: Socket
  /** The time until which the server keeps the idle socket open. */
  idleUntil: number
  start(job: Job): void
  receive(bytes: Buffer): void
  fail(error: unknown): void
}

const maxSockets = 128
const maxWaiting = 4096
/** Idle time for servers that do not send `Keep-Alive: timeout`. */
const idleMs = 4000
const maxIdleMs = 600_000
/** Safety margin, so that no request is written to a socket that the server is closing. */
const idleMarginMs = 1000
/** For larger bodies, two writes are cheaper than a copy of the body. */
const maxJoined = 64 * 1024

/** HTTP/1.1 client for one server: keeps sockets open, with one request at a time on each. */
export function createHttpClient({ url, egress, connectTimeoutMs, clock }: ClientParts): HttpClient {
  const secure = url.protocol === 'https:'
  const origin: Origin = { host: url.hostname, port: Number(url.port || (secure ? 443 : 80)), secure }
  const closing = new AbortController()
  const open = new Set<PooledSocket>()
  const waiting = new Set<Job>()
  let idle: PooledSocket[] = []
  let opening = 0
  let sweeping = false

  return {
    send(request, handler) {
      const head = toHead(request, url.host)
      const job: Job = { head, body: request.body, handler, on: undefined, ended: false }
      if (closing.signal.aborted) end(job, closedError())
      else if (head === undefined) end(job, invalidError())
      else if (waiting.size >= maxWaiting) end(job, queueFullError())
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
    const pooled = findIdle()
    if (pooled) return pooled.start(job)
    waiting.add(job)
    grow()
  }

  function findIdle(): PooledSocket | undefined {
    const now = clock.monotonic()
    for (let pooled = idle.pop(); pooled; pooled = idle.pop()) {
      if (pooled.idleUntil > now) return pooled
      pooled.socket.destroy()
    }
    return undefined
  }

  /** Opens one socket per waiting request, so that no request waits for the answer to another one. */
  function grow(): void {
    while (opening < waiting.size && opening + open.size < maxSockets) openOne()
  }

  function openOne(): void {
    let pooled: PooledSocket | undefined
    let spoken = false
    const onBytes = (bytes: Buffer) => {
      spoken = true
      pooled?.receive(bytes)
    }
    opening++
    connectGuarded(origin, egress, { timeoutMs: connectTimeoutMs, clock, signal: closing.signal, onBytes }).then(
      (socket) => {
        opening--
        if (closing.signal.aborted) return void socket.destroy()
        if (spoken) socket.destroy() // the server sent bytes before any request
        if (socket.destroyed) return failFirst(brokenError('The connection was closed'))
        pooled = createPooledSocket(socket)
        free(pooled)
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

  function free(pooled: PooledSocket): void {
    const [next] = waiting
    if (next) {
      waiting.delete(next)
      return pooled.start(next)
    }
    idle.push(pooled)
    if (!sweeping) sweep()
  }

  /** One timer closes all expired idle sockets. */
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

  function createPooledSocket(socket: Socket): PooledSocket {
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
        pooled.idleUntil = clock.monotonic() + keptMs
        if (reusable) free(pooled)
        else drop()
        done?.handler.onEnd()
      },
      onError: fail,
    })
    const idleUntil = clock.monotonic() + idleMs
    const pooled: PooledSocket = { socket, idleUntil, start, receive: reader.push, fail }
    open.add(pooled)
    socket.on('end', () => {
      if (!reader.finish()) fail(brokenError('The server closed the connection'))
    })
    socket.on('error', fail)
    socket.on('close', () => fail(brokenError('The connection was closed')))
    return pooled

    function start(next: Job): void {
      job = next
      next.on = pooled
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
      open.delete(pooled)
      idle = idle.filter((other) => other !== pooled)
      socket.destroy()
    }

    function fail(error: unknown): void {
      const failed = leave()
      if (open.has(pooled)) drop()
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

/** Reads the idle time from `timeout=5` and subtracts the safety margin. */
function toIdleMs(text: string | undefined): number {
  const seconds = /(?:^|[ ,])timeout=(\d{1,9})/i.exec(text ?? '')?.[1]
  if (seconds === undefined) return idleMs
  return Math.min(maxIdleMs, Number(seconds) * 1000 - idleMarginMs)
}

function closedError(): GatewayError {
  return new GatewayError('server-unavailable', 'The connection is being closed')
}

function queueFullError(): GatewayError {
  return new GatewayError(
    'limit-exceeded',
    `More than ${maxWaiting} requests wait for this server`,
    {},
    { reach: 'unsent' },
  )
}

function invalidError(): GatewayError {
  const message = 'The `url` or `headers` of the server contain characters that HTTP does not allow'
  return new GatewayError('connect-failed', message, {}, { reach: 'unsent' })
}

function brokenError(message: string): Error {
  return Object.assign(new Error(message), { code: 'ECONNRESET' })
}

import { GatewayError } from '../../contract/errors.ts'
import type { Clock } from '../../lib/clock.ts'
import { createPieces } from '../../lib/pieces.ts'
import { readEnvelope } from '../../wire/envelope.ts'
import type { Outgoing } from '../../wire/peer.ts'
import { createSseReader, type StreamPlace } from '../../wire/sse.ts'
import type { HttpClient } from '../http/client.ts'
import { toLinkError, toStatusError } from '../http/errors.ts'
import type { HttpRequest } from '../http/request.ts'
import type { ResponseHeaders } from '../http/response.ts'

/** A server should end the stream of an answered request. After this time the gateway closes it. */
const lingerMs = 5000
const maxIdleBody = 64 * 1024
/** The most memory that is allocated from the `Content-Length` alone, before any byte has arrived. */
const maxRoom = 4 * 1024 * 1024

type ExchangeParts = {
  readonly client: HttpClient
  readonly request: HttpRequest
  readonly maxBytes: number
  readonly clock: Clock
  readonly closing: AbortSignal
  /** Whether the answer arrives in the response or on a separate stream. */
  readonly answers: 'here' | 'elsewhere'
  /** The request was sent with an MCP session id, so a 404 means that the session is lost. */
  readonly lost: boolean
  onHeaders(status: number, headers: ResponseHeaders): void
  onMessage(message: Buffer): void
  /** Continues the answer at the place where its stream ended, if the server sent event ids. */
  resume?(place: StreamPlace): Promise<void>
}

type BodyKind = 'json' | 'events' | 'refusal' | 'nothing'

/** Sends one POST and passes on the messages of the response, JSON or events, within the size limit. */
export function exchange(message: Outgoing, parts: ExchangeParts): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  let status = 0
  let kind: BodyKind = 'nothing'
  let headers: ResponseHeaders = noHeaders
  let room: Buffer | undefined
  const pieces = createPieces()
  let bytes = 0
  let reader: ReturnType<typeof createSseReader> | undefined
  let place: StreamPlace = {}
  let cancelLinger: (() => void) | undefined
  let abort = (_error: Error) => {}

  message.onAbandoned(onAbort)
  abort = parts.client.send(parts.request, { onStart: message.sent, onHead, onData, onEnd, onError })
  return promise

  function onAbort(): void {
    abort(abandoned())
  }

  function done(): void {
    cancelLinger?.()
  }

  function fail(error: GatewayError): void {
    reject(error)
    abort(error)
  }

  function tooLarge(): void {
    fail(
      new GatewayError('result-too-large', `The answer has more than ${parts.maxBytes} bytes`, {}, { reach: 'sent' }),
    )
  }

  function onHead(code: number, received: ResponseHeaders): void {
    status = code
    headers = received
    parts.onHeaders(code, received)
    kind = bodyKind(code, received, parts.answers === 'here' && message.id !== undefined)
    if (kind === 'json') return makeRoom(Number(received.get('content-length')))
    if (kind !== 'events') return
    reader = createSseReader({
      maxBytes: parts.maxBytes,
      onTooLong: tooLarge,
      onPlace: (reached) => {
        place = { ...place, ...reached }
      },
      onEvent: (event) => {
        if (event.event !== 'message' || event.data.length === 0) return
        parts.onMessage(event.data)
        if (message.id !== undefined && !message.waiting()) cancelLinger ??= parts.clock.after(lingerMs, onAbort)
      },
    })
  }

  /** With a known length the bytes are copied only once, into their final buffer. */
  function makeRoom(length: number): void {
    if (length > parts.maxBytes) return tooLarge()
    if (length <= maxRoom) room = Buffer.allocUnsafe(length)
  }

  function onData(chunk: Buffer): void {
    if (reader) return reader.push(Buffer.from(chunk))
    if (room) chunk.copy(room, bytes)
    bytes += chunk.length
    if (room) return
    if (kind === 'json' && bytes > parts.maxBytes) return tooLarge()
    if (kind !== 'json' && bytes > maxIdleBody) return cutShort()
    if (kind !== 'nothing') pieces.add(Buffer.from(chunk))
  }

  function onEnd(): void {
    done()
    const body = room ?? pieces.take()
    if (kind === 'refusal') return refuse(body)
    if (kind === 'json' && body.length > 0) parts.onMessage(body)
    if (parts.answers === 'here' && message.waiting()) return breakOff(noResultError(kind))
    resolve()
  }

  function onError(error: unknown): void {
    done()
    if (!message.waiting()) return resolve()
    const { closing } = parts
    breakOff(kind === 'events' && !closing.aborted ? noResultError(kind) : toLinkError(error, closing.aborted))
  }

  /** The stream ended before the answer: resumes it if the server sent event ids. */
  function breakOff(error: GatewayError): void {
    if (place.id === undefined || parts.closing.aborted || !parts.resume) return reject(error)
    parts.resume(place).then(resolve, reject)
  }

  /** Stops reading bodies that contain no message: error pages and the body of a 202. */
  function cutShort(): void {
    if (kind === 'refusal') return fail(toStatusError(status, headers, parts.lost))
    resolve()
    onAbort()
  }

  /** Newer servers send a JSON-RPC error in the body of an HTTP error: it is the answer to the request. */
  function refuse(body: Buffer): void {
    const error = toStatusError(status, headers, parts.lost)
    const mayAnswer = error.code === 'connect-failed' || error.code === 'server-failed'
    if (!mayAnswer || !isErrorAnswer(body, message.id)) return reject(error)
    parts.onMessage(body)
    resolve()
  }
}

const noHeaders: ResponseHeaders = new Map()

function abandoned(): Error {
  return new Error('The request was cancelled')
}

function isErrorAnswer(body: Buffer, id: number | undefined): boolean {
  try {
    const envelope = readEnvelope(body)
    return envelope.kind === 'error' && envelope.id === String(id)
  } catch {
    return false
  }
}

function bodyKind(status: number, headers: ResponseHeaders, answered: boolean): BodyKind {
  const type = headers.get('content-type')?.split(';', 1)[0]?.trim().toLowerCase()
  const encoding = headers.get('content-encoding')
  if (status >= 300 || status < 200) return 'refusal'
  if (encoding !== undefined && encoding !== 'identity') return 'refusal' // not requested: maybe a decompression bomb
  if (!answered || status === 202) return 'nothing'
  if (type === 'text/event-stream') return 'events'
  return type === 'application/json' ? 'json' : 'refusal'
}

/** A broken stream is a problem of the network, not of the tool. `dropped` allows a reading call to be sent again. */
function noResultError(kind: BodyKind): GatewayError {
  const dropped = kind === 'events'
  const message = 'The server ended its answer without a result'
  return new GatewayError('server-broken', message, { dropped }, { reach: 'sent' })
}

import { GatewayError, toGatewayError } from '../../contract/errors.ts'
import type { Clock } from '../../lib/clock.ts'
import { JsonError } from '../../lib/json.ts'
import { onAbort } from '../../lib/signals.ts'
import { sessionHeader } from '../../wire/legacy.ts'
import { idOfLongLine, type LongLine } from '../../wire/lines.ts'
import { toErrorMessage } from '../../wire/rpc-error.ts'
import type { Http, Reply } from './http.ts'
import { credentials, type Joining } from './joining.ts'
import { findEnvelope, isAnswerTo, type Message, readMessage, toAnswer, toIdKey, toRefusal } from './message.ts'
import { createMirrored } from './mirrored.ts'
import { createSession, isLasting } from './session.ts'
import { keepSubscription } from './subscription.ts'

/** Between the lines of a program and the requests of a gateway: every line goes there, every answer comes back. */
export type Bridge = {
  receive(line: Buffer): void
  receiveLong(line: LongLine): void
  /** Takes nothing new; what is under way has until `hurry`. */
  close(hurry: AbortSignal): Promise<void>
}

export type BridgeParts = {
  readonly joining: Joining
  readonly http: Http
  readonly path: string
  readonly clock: Clock
  write(message: Buffer): void
  talk(line: string): void
}

/** A request of the program that has no answer yet; `gone` when nobody wants one any more. */
type Request = { readonly message: Message; readonly id: string; readonly gone: AbortController; sent: boolean }

const most = { messages: 1024, bytes: 256 * 1024 * 1024 }
const parseError = -32700

export function createBridge(parts: BridgeParts): Bridge {
  const { joining, http } = parts
  const session = createSession(parts)
  const mirrored = createMirrored(parts)
  const requests = new Map<string, Request>()
  const underWay = new Set<Promise<void>>()
  const closing = new AbortController()
  /** What comes before `initialize` is answered waits for it: a pipe has an order, requests side by side have none. */
  let initializing: Promise<void> | undefined
  let bytes = 0
  let open = true

  function receive(line: Buffer): void {
    if (!open || isBlank(line)) return
    try {
      take(readMessage(line))
    } catch (error) {
      if (!(error instanceof JsonError)) throw error
      const refusal = new GatewayError('request-invalid', `The line is not a JSON-RPC message: ${error.message}`)
      parts.write(toErrorMessage('null', refusal, isObjectLike(line) ? refusal.entry.rpc : parseError))
    }
  }

  function take(message: Message): void {
    const { envelope } = message
    const full = underWay.size >= most.messages || bytes + message.line.length > most.bytes
    if (envelope.kind === 'request') {
      if (full || requests.size >= most.messages)
        return refuse(envelope.id, 'limit-exceeded', 'Too many requests are under way')
      return ask(message, envelope.id)
    }
    if (message.method === 'notifications/cancelled') return cancel(message)
    if (full) return parts.talk(`Dropped ${message.method || 'an answer'}: too much is under way.`)
    follow(message.line.length, tell(message))
  }

  function refuse(id: string, code: 'limit-exceeded' | 'request-invalid', sentence: string): void {
    parts.write(toErrorMessage(id, new GatewayError(code, sentence)))
  }

  function follow(size: number, work: Promise<void>): void {
    bytes += size
    underWay.add(work)
    work.finally(() => {
      bytes -= size
      underWay.delete(work)
    })
  }

  function ask(message: Message, id: string): void {
    const key = toIdKey(JSON.parse(id))
    if (requests.has(key)) return refuse(id, 'request-invalid', 'A request with this id is still under way')
    const request: Request = { message, id, gone: new AbortController(), sent: false }
    requests.set(key, request)
    const work = answer(request).finally(() => requests.delete(key))
    if (message.method === 'initialize') initializing = work
    // A subscription has no end of its own: nobody waits for one.
    if (!isSubscription(message)) follow(message.line.length, work)
  }

  async function answer(request: Request): Promise<void> {
    const { message, id, gone } = request
    try {
      if (isSubscription(message)) return await keepSubscription(parts, message, id, gone.signal)
      let last: Buffer | undefined
      const reply = await send(message, gone.signal, {
        onSent() {
          request.sent = true
        },
        onEvent(event) {
          if (isAnswerTo(event, id)) last = event
          else parts.write(event)
        },
      })
      if (reply.streamed && last === undefined) throw silent()
      if (message.method === 'initialize') session.opened(message.line, reply, last ?? reply.body)
      const text = last ?? toAnswer(reply, id)
      if (isLasting(message) && text && findEnvelope(text)?.kind === 'result') session.answered(message)
      if (text && !gone.signal.aborted) parts.write(text)
    } catch (error) {
      if (!gone.signal.aborted) parts.write(toErrorMessage(id, toFailure(toGatewayError(error), request)))
    }
  }

  /** What the program says without wanting an answer, its own answers to questions among it. */
  async function tell(message: Message): Promise<void> {
    try {
      await send(message, closing.signal, {})
      if (message.method === 'notifications/initialized' && message.era === 'legacy') session.initialized(message.line)
    } catch (error) {
      parts.talk(`${message.method || 'An answer'} did not reach the gateway: ${toGatewayError(error).message}`)
    }
  }

  /** Stateless requests are taken back by hanging up; in the older era the gateway is told. */
  function cancel(message: Message): void {
    const request = requests.get(toIdKey(message.params.requestId))
    if (request === undefined) return
    if (request.message.era === 'legacy' && request.sent) return follow(message.line.length, tell(message))
    request.gone.abort()
  }

  /**
   * Sends once more what certainly did nothing: it never arrived, or its session was gone, or the gateway turned it away,
   * or it is not of the kind that changes anything.
   */
  async function send(
    message: Message,
    signal: AbortSignal,
    on: { onSent?(): void; onEvent?(event: Buffer): void },
  ): Promise<Reply> {
    const tried = new Set<string>()
    while (true) {
      signal.throwIfAborted()
      const gateway = await joining.join()
      const needsSession = message.era === 'legacy' && message.method !== 'initialize'
      if (needsSession) await initializing
      const headers = needsSession
        ? await session.headers(gateway)
        : { ...message.headers, ...mirrored.headersFor(message) }
      const outcome = await http
        .send({
          method: 'POST',
          url: new URL(parts.path, gateway.url),
          headers: { ...headers, ...credentials(gateway.token) },
          body: message.line,
          signal,
          ...on,
        })
        .catch((error: unknown) => ({ error: toGatewayError(error) }))
      const trouble = toTrouble(outcome, message, sessionHeader in headers)
      if (trouble === 'gone' && !signal.aborted) joining.distrust(gateway)
      if (trouble === 'session') session.lost(headers)
      if (trouble === undefined || tried.has(trouble) || signal.aborted) {
        if ('error' in outcome) throw signal.aborted ? signal.reason : outcome.error
        return outcome
      }
      tried.add(trouble)
      if (trouble === 'headers') await mirrored.learn(gateway, message, signal)
    }
  }

  return {
    receive,
    receiveLong(line) {
      const id = idOfLongLine(line) ?? 'null'
      const sentence = `The line has ${line.bytes} bytes, which is more than is taken`
      parts.write(toErrorMessage(id, new GatewayError('request-too-large', sentence)))
    },
    async close(hurry) {
      open = false
      session.quiet()
      for (const request of requests.values()) if (isSubscription(request.message)) request.gone.abort()
      const hurried = Promise.withResolvers<void>()
      const unlink = onAbort(hurry, hurried.resolve)
      await Promise.race([Promise.allSettled(underWay), hurried.promise])
      unlink()
      closing.abort(new GatewayError('shutting-down', 'The program is ending'))
      for (const request of requests.values()) request.gone.abort()
      await session.end()
    },
  }
}

/** What may be mended by trying again, and how. */
function toTrouble(
  outcome: Reply | { error: GatewayError },
  message: Message,
  inSession: boolean,
): 'gone' | 'session' | 'headers' | undefined {
  if ('error' in outcome) {
    const harmless = outcome.error.reach === 'unsent' || message.method !== 'tools/call'
    return outcome.error.code === 'unreachable' && harmless ? 'gone' : undefined
  }
  if (outcome.status === 404 && inSession) return 'session'
  if (outcome.status === 400 && message.method === 'tools/call' && toRefusal(outcome).code === 'header-mismatch')
    return 'headers'
  // A token may have been replaced meanwhile, and a gateway that is ending by the next one.
  return outcome.status === 401 || outcome.status === 503 ? 'gone' : undefined
}

function silent(): GatewayError {
  return new GatewayError('unreachable', 'The gateway ended before it answered')
}

/** A call that has left and has no answer may have been run, and nobody here can tell. */
function toFailure(error: GatewayError, { message, sent }: Request): GatewayError {
  if (error.code !== 'unreachable' || error.reach === 'unsent' || !sent || message.method !== 'tools/call') return error
  return new GatewayError('call-unknown', `${error.message}; the call may have taken effect`)
}

function isSubscription(message: Message): boolean {
  return message.era === 'modern' && message.method === 'subscriptions/listen'
}

function isBlank(line: Buffer): boolean {
  return line.every((byte) => byte === 0x20 || byte === 0x0d || byte === 0x09)
}

/** JSON that is no message of ours, as far as its first sign tells. */
function isObjectLike(line: Buffer): boolean {
  try {
    JSON.parse(line.toString('utf8'))
    return true
  } catch {
    return false
  }
}

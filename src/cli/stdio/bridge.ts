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

/** Forwards messages between an MCP client on standard input and output and the gateway. */
export type Bridge = {
  receive(line: Buffer): void
  receiveLong(line: LongLine): void
  /** Accepts no new messages. Open requests may finish until `hurry` aborts. */
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

/** A request of the client without an answer yet; `gone` aborts when the client cancels it. */
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
  /** Messages wait until `initialize` is answered: a pipe is ordered, but parallel HTTP requests are not. */
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
      if (full || requests.size >= most.messages) return refuse(envelope.id, 'limit-exceeded', 'Too many open requests')
      return ask(message, envelope.id)
    }
    if (message.method === 'notifications/cancelled') return cancel(message)
    if (full) return parts.talk(`Dropped ${message.method || 'an answer'}: too many open messages.`)
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
    if (requests.has(key)) return refuse(id, 'request-invalid', 'A request with this id is still open')
    const request: Request = { message, id, gone: new AbortController(), sent: false }
    requests.set(key, request)
    const work = answer(request).finally(() => requests.delete(key))
    if (message.method === 'initialize') initializing = work
    // A subscription does not end, so closing does not wait for it.
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

  /** Forwards notifications of the client, and its answers to questions of servers. */
  async function tell(message: Message): Promise<void> {
    try {
      await send(message, closing.signal, {})
      if (message.method === 'notifications/initialized' && message.era === 'legacy') session.initialized(message.line)
    } catch (error) {
      parts.talk(`${message.method || 'An answer'} did not reach the gateway: ${toGatewayError(error).message}`)
    }
  }

  /** In the stateless protocol, closing the request cancels it; in older revisions the notification is forwarded. */
  function cancel(message: Message): void {
    const request = requests.get(toIdKey(message.params.requestId))
    if (request === undefined) return
    if (request.message.era === 'legacy' && request.sent) return follow(message.line.length, tell(message))
    request.gone.abort()
  }

  /**
   * Retries only requests without an effect: the request did not arrive, its MCP session was unknown, the gateway refused
   * it, or the method changes nothing.
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
      const sentence = `The line has ${line.bytes} bytes, which is more than the maximum`
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

/** The kind of failure that a retry may fix. */
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
  // The token may have been replaced (401), or a new gateway may follow one that is ending (503).
  return outcome.status === 401 || outcome.status === 503 ? 'gone' : undefined
}

function silent(): GatewayError {
  return new GatewayError('unreachable', 'The gateway ended before it answered')
}

/** A call that was sent but not answered may have run: report that its result is unknown. */
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

/** Whether the line looks like a JSON object or array, by its first character. */
function isObjectLike(line: Buffer): boolean {
  try {
    JSON.parse(line.toString('utf8'))
    return true
  } catch {
    return false
  }
}

import { isUtf8 } from 'node:buffer'
import { GatewayError, type Reach } from '../contract/errors.ts'
import type { JsonObject } from '../contract/json.ts'
import type { Clock } from '../lib/clock.ts'
import { isObject, JsonError, maxDepth, parseJson, type Scan } from '../lib/json.ts'
import { onAbort, toCancellation } from '../lib/signals.ts'
import { type Answer, createAnswer, toOwnMembers } from './answer.ts'
import type { Caller, Progress } from './caller.ts'
import { relatedTaskKey, type ServerCodec, subscriptionKey } from './codec.ts'
import { type Envelope, readEnvelope } from './envelope.ts'
import { type Asker, createQuestions, type QuestionEnd } from './questions.ts'

/** One message to a server. */
export type Outgoing = {
  /** The gateway's number of the request; undefined for notifications and for answers to requests of the server. */
  readonly id: number | undefined
  readonly body: Buffer
  readonly headers: Readonly<Record<string, string>>
  /** Called when the first bytes may have reached the server. */
  sent(): void
  /** Whether a caller still waits for the answer. */
  waiting(): boolean
  /** Calls back when the caller stops waiting before the answer has arrived. */
  onAbandoned(listener: () => void): void
}

export type Carrier = {
  /** Resolves when the message was handed over. A rejection fails only this request. */
  send(message: Outgoing): Promise<void>
}

export type RequestOptions = {
  readonly signal: AbortSignal
  /** Milliseconds without progress. */
  readonly timeoutMs: number
  /** Milliseconds in total, also with progress. */
  readonly maximumMs?: number
  readonly meta?: JsonObject | undefined
  /** The client that waits. Requests that the gateway makes for itself have none. */
  readonly caller?: Caller | undefined
  /** The task that the request is about. */
  readonly task?: string | undefined
  /** Arguments that HTTP repeats, by header. */
  readonly mirrored?: Readonly<Record<string, string>> | undefined
  /** The reader checks each part of the answer itself, so a part may be nested too deeply. */
  readonly deep?: boolean
  readonly onProgress?: ((progress: Progress) => void) | undefined
  /** The server has acknowledged a subscription, with the parts that it supports. */
  readonly onAcknowledged?: ((honoured: unknown) => void) | undefined
  /** The server answered after the request had ended. */
  readonly onLate?: (() => void) | undefined
}

export type PeerCounters = { unmatched: number; late: number; invalid: number }

/** The gateway's side of a link to a server. It gives each request its own id and progress token, whichever caller it is for. */
export type Peer = {
  request(method: string, params: JsonObject, options: RequestOptions): Promise<Answer>
  notify(method: string, params: JsonObject): void
  /** Reads one message from the server. `origin` is the request on whose stream it arrived, if the carrier knows. */
  receive(message: Buffer, origin?: number): void
  fail(id: number, error: GatewayError): void
  /** Fails the request `id`: its answer was too long. */
  failRaw(id: string, error: GatewayError): void
  inFlight(): number
  readonly counters: PeerCounters
  /** Fails all running requests. */
  close(error: GatewayError): void
}

export type PeerParts = {
  readonly carrier: Carrier
  readonly codec: ServerCodec
  readonly clock: Clock
  /** Whether requests are cancelled by closing the stream of the answer, or by a notification. */
  readonly cancelsByClosing: boolean
  /** Masks messages of the server that are not answers. */
  clean(params: JsonObject): JsonObject
  onNotification(method: string, params: JsonObject): void
  /** A question arrived while several calls were running on the link. */
  onAmbiguous(): void
}

type Pending = {
  readonly options: RequestOptions
  /** Called when the caller stops waiting. An `AbortController` would cost more than the rest of this object. */
  abandoned: (() => void)[] | undefined
  sent: boolean
  settle(outcome: Answer | GatewayError): void
  touch(): void
  /** Pauses the time limit until the returned function is called. `controller` is aborted when the request ends. */
  hold(controller: AbortController): () => void
}

const rememberedLate = 1000
const maxAnswers = 64

export function createPeer(parts: PeerParts): Peer {
  const { carrier, codec, clock } = parts
  const pending = new Map<number, Pending>()
  const given = new Map<number, (() => void) | undefined>()
  const counters: PeerCounters = { unmatched: 0, late: 0, invalid: 0 }
  let nextId = 1
  let closed: GatewayError | undefined
  let answering = 0
  const questions = createQuestions({ askers, answer, onAmbiguous: () => parts.onAmbiguous() })

  const peer: Peer = { request, notify, receive, fail, failRaw, inFlight: () => pending.size, counters, close }
  return peer

  function request(method: string, params: JsonObject, options: RequestOptions): Promise<Answer> {
    if (closed) return Promise.reject(closed.withReach('unsent'))
    if (options.signal.aborted) return Promise.reject(toCancellation(options.signal, 'unsent'))
    const id = nextId++
    const { promise, resolve, reject } = Promise.withResolvers<Answer>()
    let started = clock.monotonic()
    let heldSince = 0
    let asking: Set<AbortController> | undefined
    const maximumMs = options.maximumMs ?? options.timeoutMs
    let cancelTimer = clock.after(Math.min(options.timeoutMs, maximumMs), onTimeout)

    const entry: Pending = {
      options,
      abandoned: undefined,
      sent: false,
      settle(outcome) {
        if (!pending.delete(id)) return
        cancelTimer()
        unlink()
        for (const question of asking ?? []) question.abort()
        if (outcome instanceof GatewayError) reject(outcome)
        if (!(outcome instanceof GatewayError)) resolve(outcome)
      },
      touch() {
        if (asking?.size) return
        const left = maximumMs - (clock.monotonic() - started)
        cancelTimer()
        cancelTimer = clock.after(Math.max(0, Math.min(options.timeoutMs, left)), onTimeout)
      },
      hold(question) {
        const open = asking ?? new Set<AbortController>()
        asking = open
        if (open.size === 0) heldSince = clock.monotonic()
        open.add(question)
        cancelTimer()
        return () => {
          open.delete(question)
          if (open.size > 0) return
          started += clock.monotonic() - heldSince // overlapping pauses count once
          if (pending.has(id)) entry.touch()
        }
      },
    }
    function onTimeout() {
      giveUp(id, entry, timeoutError(options, entry.sent))
    }
    pending.set(id, entry)
    const unlink = onAbort(options.signal, () =>
      giveUp(id, entry, toCancellation(options.signal, entry.sent ? 'sent' : 'unsent')),
    )

    const { meta, caller, onProgress } = options
    const shaped = codec.shape(params, { meta, caller, progressToken: onProgress ? id : undefined })
    const message: Outgoing = {
      id,
      body: Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, method, params: shaped })),
      headers: codec.headers(method, params, options.mirrored),
      sent: () => {
        entry.sent = true
      },
      waiting: () => pending.has(id),
      onAbandoned(listener) {
        entry.abandoned ??= []
        entry.abandoned.push(listener)
      },
    }
    carrier.send(message).catch((error: unknown) => entry.settle(toSendError(error, entry.sent)))
    return promise
  }

  /** Ends a request: the caller gets the error at once, and the server is notified if it may have received the request. */
  function giveUp(id: number, entry: Pending, error: GatewayError): void {
    if (!pending.has(id)) return
    entry.settle(error)
    given.set(id, entry.options.onLate)
    for (const old of given.keys()) {
      if (given.size <= rememberedLate) break
      given.delete(old)
    }
    if (entry.sent && !parts.cancelsByClosing) {
      notify('notifications/cancelled', { requestId: id, reason: error.message })
    }
    abandon(entry)
  }

  function abandon({ abandoned = [] }: Pending): void {
    for (const listener of abandoned) listener()
  }

  function notify(method: string, params: JsonObject): void {
    if (closed) return
    const shaped = codec.shape(params, {})
    sendQuietly(Buffer.from(JSON.stringify({ jsonrpc: '2.0', method, params: shaped })), codec.headers(method, params))
  }

  function receive(bytes: Buffer, origin?: number): void {
    // Invalid UTF-8 of a server must not reach the next reader.
    const message = isUtf8(bytes) ? bytes : Buffer.from(bytes.toString('utf8'))
    const depth: Scan = { deepest: 0 }
    let envelope: Envelope
    try {
      envelope = readEnvelope(message, depth)
    } catch (error) {
      if (!(error instanceof JsonError)) throw error
      counters.invalid++
      if (origin !== undefined) fail(origin, brokenError())
      return
    }
    if (envelope.kind === 'notification') return onNotification(message, envelope, origin)
    if (envelope.kind === 'request') return onRequest(message, envelope, origin)
    const id = toOwnId(envelope.id)
    const entry = id === undefined ? undefined : pending.get(id)
    if (id === undefined || !entry || (origin !== undefined && origin !== id)) return onUnmatched(id)
    if (depth.deepest > maxDepth && !entry.options.deep) {
      return entry.settle(new GatewayError('server-broken', 'The answer is nested too deeply', {}, { reach: 'sent' }))
    }
    const body = message.subarray(envelope.span.start, envelope.span.end)
    if (body[0] !== 0x7b) return entry.settle(brokenError())
    const answer = createAnswer(envelope.kind, body, toOwnMembers(envelope.span))
    // The bytes are passed on unchanged. With a duplicate key, the gateway and the caller could read different values.
    if (hasKeyTwice(answer)) {
      return entry.settle(new GatewayError('server-broken', 'The answer has a duplicate key', {}, { reach: 'sent' }))
    }
    entry.settle(answer)
  }

  function onUnmatched(id: number | undefined): void {
    if (id === undefined || !given.has(id)) {
      counters.unmatched++
      return
    }
    counters.late++
    given.get(id)?.()
    given.delete(id)
  }

  function onNotification(
    message: Buffer,
    envelope: Envelope & { kind: 'notification' },
    origin: number | undefined,
  ): void {
    const { method } = envelope
    const said = paramsOf(message, envelope.params)
    if (!said) return void counters.invalid++
    const params = parts.clean(said)
    if (method === 'notifications/progress') return onProgress(params)
    if (method === 'notifications/cancelled') questions.cancel(params.requestId)
    if (method === 'notifications/elicitation/complete') questions.complete(params)
    if (method === 'notifications/message') onLogged(params, origin)
    if (method === 'notifications/subscriptions/acknowledged') onAcknowledged(params, origin)
    parts.onNotification(method, params)
  }

  function onProgress(params: JsonObject): void {
    const entry = typeof params.progressToken === 'number' ? pending.get(params.progressToken) : undefined
    if (!entry) return
    entry.touch()
    const progress = toProgress(params)
    if (progress) entry.options.onProgress?.(progress)
  }

  /** A cancelled subscription may still be acknowledged, so acknowledgements are matched by the id of the subscription. */
  function onAcknowledged(params: JsonObject, origin: number | undefined): void {
    const named = isObject(params._meta) ? params._meta[subscriptionKey] : undefined
    const latest = [...pending.values()].findLast(({ options }) => options.onAcknowledged)
    const id = origin ?? named
    const entry = typeof id === 'number' ? pending.get(id) : latest
    entry?.options.onAcknowledged?.(params.notifications)
  }

  /** A log message without a call is passed on only if exactly one call is running. */
  function onLogged(params: JsonObject, origin: number | undefined): void {
    const [asker, ...others] = askers(origin, params)
    if (asker && others.length === 0) asker.caller.tell('notifications/message', params)
  }

  function onRequest(message: Buffer, envelope: Envelope & { kind: 'request' }, origin: number | undefined): void {
    if (envelope.method === 'ping') return void answer(envelope.id, { result: {} })
    const params = parts.clean(paramsOf(message, envelope.params) ?? {})
    questions.receive(envelope.id, { method: envelope.method, params }, origin)
  }

  /** The call on whose stream a message arrived, or that waits for its task; else all running calls. */
  function askers(origin: number | undefined, params: JsonObject): readonly Asker[] {
    const own = origin ? pending.get(origin) : undefined
    const task = relatedTask(params)
    const all = [...pending.values()].filter(({ options }) => task === undefined || options.task === task)
    const candidates = own ? [own] : origin ? [] : all
    return candidates.flatMap(({ options: { caller }, hold }) => (caller ? [{ caller, hold }] : []))
  }

  async function answer(id: string, end: QuestionEnd): Promise<void> {
    if (answering >= maxAnswers) return // a server that does not read answers gets no more
    answering++
    const body = `{"jsonrpc":"2.0","id":${id},${JSON.stringify(end).slice(1)}`
    await sendQuietly(Buffer.from(body), codec.headers(undefined, {})).finally(() => answering--)
  }

  /** Messages without an answer. If the link cannot send them, it closes itself. */
  function sendQuietly(body: Buffer, headers: Record<string, string>): Promise<void> {
    return carrier
      .send({ id: undefined, body, headers, sent() {}, waiting: () => false, onAbandoned() {} })
      .catch(() => {})
  }

  function fail(id: number, error: GatewayError): void {
    const entry = pending.get(id)
    entry?.settle(error.withReach(reachOf(error, entry.sent)))
  }

  function failRaw(id: string, error: GatewayError): void {
    const own = toOwnId(id)
    if (own !== undefined) fail(own, error)
  }

  function close(error: GatewayError): void {
    if (closed) return
    closed = error
    for (const [id, entry] of pending) {
      fail(id, error)
      abandon(entry)
    }
  }
}

/** Only the number that was sent is accepted: `"7"` is not `7`. */
function toOwnId(raw: string): number | undefined {
  return /^[1-9]\d{0,15}$/.test(raw) ? Number(raw) : undefined
}

function paramsOf(message: Buffer, span: { start: number; end: number } | undefined): JsonObject | undefined {
  if (!span) return {}
  try {
    const params = parseJson(message.subarray(span.start, span.end))
    return isObject(params) ? params : undefined
  } catch {
    return undefined
  }
}

function toProgress(params: JsonObject): Progress | undefined {
  if (typeof params.progress !== 'number') return undefined
  return {
    progress: params.progress,
    ...(typeof params.total === 'number' ? { total: params.total } : {}),
    ...(typeof params.message === 'string' ? { message: params.message } : {}),
  }
}

function relatedTask({ _meta }: JsonObject): string | undefined {
  const related = isObject(_meta) ? _meta[relatedTaskKey] : undefined
  return isObject(related) && typeof related.taskId === 'string' ? related.taskId : undefined
}

/** A request that was not sent had no effect. For a sent request, only a refusal proves that. */
function reachOf({ reach }: Pick<GatewayError, 'reach'>, sent: boolean): Reach {
  if (!sent) return 'unsent'
  return reach === 'refused' ? 'refused' : 'sent'
}

function toSendError(error: unknown, sent: boolean): GatewayError {
  const reach = sent ? 'sent' : 'unsent'
  if (error instanceof GatewayError) return error.reach === undefined ? error.withReach(reach) : error
  return new GatewayError('server-broken', 'The connection to the server was lost', {}, { cause: error, reach })
}

function timeoutError(options: RequestOptions, sent: boolean): GatewayError {
  const { timeoutMs, maximumMs = timeoutMs } = options
  const message = `No answer within ${Math.min(timeoutMs, maximumMs)} ms (${maximumMs} ms in all)`
  return new GatewayError('call-timeout', message, {}, { reach: sent ? 'sent' : 'unsent' })
}

function hasKeyTwice(answer: Answer): boolean {
  const members = answer.members()
  return members.length > 1 && new Set(members.map(({ key }) => key)).size < members.length
}

function brokenError(): GatewayError {
  return new GatewayError('server-broken', 'The answer is not valid JSON-RPC', {}, { reach: 'sent' })
}

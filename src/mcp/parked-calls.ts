import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { GatewayError } from '../contract/errors.ts'
import type { JsonObject } from '../contract/json.ts'
import type { Clock } from '../lib/clock.ts'
import type { Ids } from '../lib/ids.ts'
import { isObject } from '../lib/json.ts'
import { onAbort } from '../lib/signals.ts'
import type { Answer } from '../wire/answer.ts'
import { type Caller, type Questions, type Replies, refusal } from '../wire/caller.ts'

/** What a request gets: the answer of its call, or questions to reply to with the next request. */
export type Step =
  | { readonly kind: 'answer'; readonly answer: Answer }
  | { readonly kind: 'questions'; readonly questions: Questions; readonly state: string }

/** The principal and the request that a state is valid for. */
export type StateOwner = { who(): string; readonly method: string; readonly params: JsonObject }

/** The request that waits for a call now. A parked call has none. */
export type OpenRequest = {
  readonly owner: StateOwner
  /** Calls back when the client disconnects; the returned function removes the listener. */
  onGone(listener: () => void): () => void
  tell(method: string, params: JsonObject): void
  readonly hearsProgress: boolean
  /** Calls back when the answer to this request has left, or never will. */
  onDelivered(listener: () => void): void
}

/** The part of a caller that depends on the request that is open now. */
export type ParkingCaller = Pick<Caller, 'signal' | 'ask' | 'tell'> &
  Required<Pick<Caller, 'hearsProgress' | 'onDelivered'>> & {
    /** Asks before anything was sent to the server: if the state is lost, the request starts again from the beginning. */
    askFirst: Caller['ask']
  }

/** Calls of the stateless era. A call that waits for replies is parked, and the client's next request resumes it. */
export type ParkedCalls = {
  begin(request: OpenRequest, run: (caller: ParkingCaller) => Promise<Answer>): Promise<Step>
  /** Whether a gateway made this state, valid or not. Other states belong to servers. */
  owns(state: unknown): state is string
  /** Whether the state is of a call that was not sent yet and is not parked here: the request can start again. */
  isLost(state: string): boolean
  resume(state: string, replies: unknown, request: OpenRequest): Promise<Step>
  close(): void
}

const prefix = 'sp1.'
/** Marks the states of calls that were not sent yet. */
const firstMark = 'first.'
const parkedMs = 600_000
const maxParked = 1024
const maxPerCaller = 8
const maxParkedBytes = 64 * 1024 * 1024

type Asked = {
  readonly questions: Questions
  readonly first: boolean
  readonly answer: PromiseWithResolvers<Replies>
}

/** A call over several requests of its client. */
type ResumableCall = {
  readonly controller: AbortController
  readonly asked: Set<Asked>
  request: OpenRequest | undefined
  step: PromiseWithResolvers<Step>
  ended: (() => void) | undefined
  /** The listener for the delivery of the answer, while no request is open. */
  release: (() => void) | undefined
  parked: Parked | undefined
}

/** The one state that resumes a call, and the questions that it replies to. */
type Parked = {
  readonly state: string
  readonly who: string
  readonly asked: Asked
  /** The call is no longer parked. */
  leave(): void
  abandon(): void
}

export function createParkedCalls(parts: { instance: string; clock: Clock; ids: Ids }): ParkedCalls {
  const { clock } = parts
  const key = randomBytes(32)
  const parked = new Map<string, ResumableCall>()
  let parkedBytes = 0
  let rounds = 0

  return { begin, owns, isLost, resume, close }

  function begin(request: OpenRequest, run: (caller: ParkingCaller) => Promise<Answer>): Promise<Step> {
    const call: ResumableCall = {
      controller: new AbortController(),
      asked: new Set(),
      request: undefined,
      step: Promise.withResolvers(),
      ended: undefined,
      release: undefined,
      parked: undefined,
    }
    const step = attend(call, request)
    const caller: ParkingCaller = {
      signal: call.controller.signal,
      ask: (questions, signal) => ask(call, { questions, first: false }, signal),
      askFirst: (questions, signal) => ask(call, { questions, first: true }, signal),
      tell: (method, params) => call.request?.tell(method, params),
      hearsProgress: () => call.request?.hearsProgress ?? false,
      onDelivered(listener) {
        if (call.request) return call.request.onDelivered(listener)
        if (!call.parked) return listener()
        call.release = listener
      },
    }
    run(caller).then(
      (answer) => finish(call, () => call.step.resolve({ kind: 'answer', answer })),
      (error: unknown) => finish(call, () => call.step.reject(error)),
    )
    return step
  }

  /** The request waits for the call. If its client disconnects, the call is cancelled. */
  async function attend(call: ResumableCall, request: OpenRequest): Promise<Step> {
    call.request = request
    if (call.release) request.onDelivered(call.release)
    call.release = undefined
    const stop = request.onGone(() => call.controller.abort())
    try {
      return await call.step.promise
    } finally {
      stop()
      call.request = undefined
    }
  }

  function finish(call: ResumableCall, tell: () => void): void {
    call.ended = tell
    if (!call.parked) tell()
  }

  function ask(call: ResumableCall, wanted: Pick<Asked, 'questions' | 'first'>, signal: AbortSignal): Promise<Replies> {
    const asked: Asked = { ...wanted, answer: Promise.withResolvers() }
    call.asked.add(asked)
    // The server withdrew the question. A client that replies to it gets the next step of the call.
    const unlink = onAbort(signal, () => refuse(call, asked, 'The question was withdrawn'))
    if (call.request && call.asked.has(asked)) park(call, asked)
    return asked.answer.promise.finally(unlink)
  }

  function refuse(call: ResumableCall, asked: Asked, message: string): void {
    call.asked.delete(asked)
    asked.answer.reject(refusal({ code: -32603, message }))
  }

  /** The open request is answered with the questions, and the call waits for the next request. */
  function park(call: ResumableCall, asked: Asked): void {
    const { request } = call
    if (!request || call.parked) return
    const who = request.owner.who()
    makeRoom(who)
    const bytes = JSON.stringify(asked.questions).length
    if (parked.size >= maxParked || parkedBytes + bytes > maxParkedBytes)
      return refuse(call, asked, 'Too many calls are parked')
    const id = `${asked.first ? firstMark : ''}${parts.instance}.${++rounds}.${parts.ids.secret(12)}`
    const state = `${prefix}${id}.${sign(id, request.owner)}`
    const leave = () => {
      if (!parked.delete(id)) return
      parkedBytes -= bytes
      cancelExpiry()
    }
    const abandon = () => {
      leave()
      call.parked = undefined
      call.release?.()
      call.release = undefined
      call.controller.abort()
    }
    const cancelExpiry = clock.after(parkedMs, abandon)
    call.parked = { state, who, asked, leave, abandon }
    parked.set(id, call)
    parkedBytes += bytes
    const { step } = call
    call.step = Promise.withResolvers()
    call.step.promise.catch(() => {}) // the call may fail before the client returns
    step.resolve({ kind: 'questions', questions: asked.questions, state })
  }

  /** Drops the oldest parked call of a client that parks too many: a parked call keeps a link to its server busy. */
  function makeRoom(who: string): void {
    const own = [...parked.values()].filter((call) => call.parked?.who === who)
    if (own.length >= maxPerCaller) own[0]?.parked?.abandon()
  }

  function owns(state: unknown): state is string {
    return typeof state === 'string' && state.startsWith(prefix)
  }

  function isLost(state: string): boolean {
    return state.startsWith(prefix + firstMark) && !parked.has(idOf(state))
  }

  async function resume(state: string, replies: unknown, request: OpenRequest): Promise<Step> {
    const { call, asked } = take(state, request.owner)
    const step = attend(call, request)
    const answers = toReplies(asked.questions, replies)
    // Replies are only for the questions of this state: if those were withdrawn, the replies are dropped.
    if (answers && call.asked.delete(asked)) asked.answer.resolve(answers)
    call.ended?.()
    const [next] = call.asked
    if (next && !call.ended) park(call, next)
    return step
  }

  /** A state is valid once, for the principal and the request that it was made for. */
  function take(state: string, owner: StateOwner): { call: ResumableCall; asked: Asked } {
    const id = idOf(state)
    const call = parked.get(id)
    const genuine = isEqual(state.slice(state.lastIndexOf('.') + 1), sign(id, owner))
    if (!genuine || !call?.parked || call.parked.state !== state) {
      throw new GatewayError('state-invalid', 'This state is invalid, was used already, or belongs to another request')
    }
    const { asked, leave } = call.parked
    leave()
    call.parked = undefined
    return { call, asked }
  }

  function sign(id: string, { who, method, params }: StateOwner): string {
    const { _meta, inputResponses, requestState, ...asked } = params
    const digest = createHash('sha256').update(toSortedJson(asked)).digest('base64url')
    return createHmac('sha256', key)
      .update(JSON.stringify([id, who(), method, digest]))
      .digest('base64url')
  }

  function close(): void {
    for (const call of parked.values()) call.parked?.abandon()
  }
}

function idOf(state: string): string {
  return state.slice(prefix.length, Math.max(prefix.length, state.lastIndexOf('.')))
}

/** The replies to these questions; undefined if one is missing. Other keys are dropped. */
function toReplies(questions: Questions, given: unknown): Replies | undefined {
  if (!isObject(given)) return undefined
  const replies: [string, JsonObject][] = []
  for (const key of Object.keys(questions)) {
    const reply = Object.hasOwn(given, key) ? given[key] : undefined
    if (!isObject(reply)) return undefined
    replies.push([key, reply])
  }
  return Object.fromEntries(replies) // an assignment would lose `__proto__`
}

function isEqual(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)]
  return left.length === right.length && timingSafeEqual(left, right)
}

/** The same text for equal values with different orders of keys. */
function toSortedJson(value: JsonObject): string {
  return JSON.stringify(value, (_key, each: unknown) =>
    isObject(each) ? Object.fromEntries(Object.entries(each).toSorted(([a], [b]) => (a < b ? -1 : 1))) : each,
  )
}

import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { GatewayError } from '../contract/errors.ts'
import type { JsonObject } from '../contract/json.ts'
import type { Clock } from '../lib/clock.ts'
import type { Ids } from '../lib/ids.ts'
import { isObject } from '../lib/json.ts'
import { onAbort } from '../lib/signals.ts'
import type { Answer } from '../wire/answer.ts'
import { type Questions, type Replies, refusal } from '../wire/caller.ts'

/** Where a call stands when its caller is told something: done, or in need of answers. */
export type Step =
  | { readonly kind: 'answer'; readonly answer: Answer }
  | { readonly kind: 'questions'; readonly questions: Questions; readonly state: string }

/** Whom a state was given to, and for which request: nobody else, and for nothing else, can it be used. */
export type Binding = { who(): string; readonly method: string; readonly params: JsonObject }

/** The request that waits for a call now. A call that is parked has none. */
export type Waiting = {
  readonly binding: Binding
  /** Calls back when the caller hangs up; the returned function takes that back. */
  onGone(listener: () => void): () => void
  tell(method: string, params: JsonObject): void
  readonly hearsProgress: boolean
  /** Calls back when what this request got for an answer has left, or never will. */
  onEnd(listener: () => void): void
}

/** What the running call is given to reach whoever waits for it. */
export type TalkEnd = {
  readonly signal: AbortSignal
  ask(questions: Questions, signal: AbortSignal): Promise<Replies>
  /** For what is asked before anything was sent: should its state be lost, the request begins anew. */
  askFirst(questions: Questions, signal: AbortSignal): Promise<Replies>
  tell(method: string, params: JsonObject): void
  /** Whether the request that waits now does. */
  hearsProgress(): boolean
  /** As `Waiting.onEnd`, of the request that gets the answer of the call. */
  onEnd(listener: () => void): void
}

/** Calls of the stateless era: while somebody thinks they are parked, and the next request takes them up again. */
export type ParkedCalls = {
  begin(waiting: Waiting, run: (end: TalkEnd) => Promise<Answer>): Promise<Step>
  /** Whether a state was made here, valid or not: any other belongs to a server. */
  owns(state: unknown): state is string
  /** A state of a call that has not begun, and that waits here no longer: nothing is lost with it. */
  isLost(state: string): boolean
  resume(state: string, replies: unknown, waiting: Waiting): Promise<Step>
  close(): void
}

const prefix = 'sp1.'
/** Marks the states of calls that have not begun. */
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

type Talk = {
  readonly controller: AbortController
  readonly asked: Set<Asked>
  waiting: Waiting | undefined
  step: PromiseWithResolvers<Step>
  ended: (() => void) | undefined
  /** Called when the answer has left; kept while no request waits for it. */
  release: (() => void) | undefined
  parked: Parked | undefined
}

/** The one state that takes a call up again, and what it answers. */
type Parked = {
  readonly state: string
  readonly who: string
  readonly asked: Asked
  /** It waits no longer. */
  leave(): void
  abandon(): void
}

export function createParkedCalls(parts: { instance: string; clock: Clock; ids: Ids }): ParkedCalls {
  const { clock } = parts
  const key = randomBytes(32)
  const parked = new Map<string, Talk>()
  let parkedBytes = 0
  let rounds = 0

  return { begin, owns, isLost, resume, close }

  function begin(waiting: Waiting, run: (end: TalkEnd) => Promise<Answer>): Promise<Step> {
    const talk: Talk = {
      controller: new AbortController(),
      asked: new Set(),
      waiting: undefined,
      step: Promise.withResolvers(),
      ended: undefined,
      release: undefined,
      parked: undefined,
    }
    const step = attend(talk, waiting)
    const end: TalkEnd = {
      signal: talk.controller.signal,
      ask: (questions, signal) => ask(talk, { questions, first: false }, signal),
      askFirst: (questions, signal) => ask(talk, { questions, first: true }, signal),
      tell: (method, params) => talk.waiting?.tell(method, params),
      hearsProgress: () => talk.waiting?.hearsProgress ?? false,
      onEnd(listener) {
        if (talk.waiting) return talk.waiting.onEnd(listener)
        if (!talk.parked) return listener()
        talk.release = listener
      },
    }
    run(end).then(
      (answer) => finish(talk, () => talk.step.resolve({ kind: 'answer', answer })),
      (error: unknown) => finish(talk, () => talk.step.reject(error)),
    )
    return step
  }

  /** From now on this request waits; when its caller hangs up, the call is taken back. */
  async function attend(talk: Talk, waiting: Waiting): Promise<Step> {
    talk.waiting = waiting
    if (talk.release) waiting.onEnd(talk.release)
    talk.release = undefined
    const stop = waiting.onGone(() => talk.controller.abort())
    try {
      return await talk.step.promise
    } finally {
      stop()
      talk.waiting = undefined
    }
  }

  function finish(talk: Talk, tell: () => void): void {
    talk.ended = tell
    if (!talk.parked) tell()
  }

  function ask(talk: Talk, wanted: Pick<Asked, 'questions' | 'first'>, signal: AbortSignal): Promise<Replies> {
    const asked: Asked = { ...wanted, answer: Promise.withResolvers() }
    talk.asked.add(asked)
    // The server no longer wants to know. Who comes with an answer to it hears how the call went on.
    const unlink = onAbort(signal, () => refuse(talk, asked, 'The question was taken back'))
    if (talk.waiting && talk.asked.has(asked)) park(talk, asked)
    return asked.answer.promise.finally(unlink)
  }

  function refuse(talk: Talk, asked: Asked, message: string): void {
    talk.asked.delete(asked)
    asked.answer.reject(refusal({ code: -32603, message }))
  }

  /** The request that waits gets the question for an answer, and the call waits for the next one. */
  function park(talk: Talk, asked: Asked): void {
    const { waiting } = talk
    if (!waiting || talk.parked) return
    const who = waiting.binding.who()
    makeRoom(who)
    const bytes = JSON.stringify(asked.questions).length
    if (parked.size >= maxParked || parkedBytes + bytes > maxParkedBytes)
      return refuse(talk, asked, 'Too many calls wait for answers')
    const id = `${asked.first ? firstMark : ''}${parts.instance}.${++rounds}.${parts.ids.secret(12)}`
    const state = `${prefix}${id}.${sign(id, waiting.binding)}`
    const leave = () => {
      if (!parked.delete(id)) return
      parkedBytes -= bytes
      cancelExpiry()
    }
    const abandon = () => {
      leave()
      talk.parked = undefined
      talk.release?.()
      talk.release = undefined
      talk.controller.abort()
    }
    const cancelExpiry = clock.after(parkedMs, abandon)
    talk.parked = { state, who, asked, leave, abandon }
    parked.set(id, talk)
    parkedBytes += bytes
    const { step } = talk
    talk.step = Promise.withResolvers()
    talk.step.promise.catch(() => {}) // it may end before anybody comes back for it
    step.resolve({ kind: 'questions', questions: asked.questions, state })
  }

  /** A caller that parks ever more calls does not come back for the first: they would keep links of servers busy. */
  function makeRoom(who: string): void {
    const own = [...parked.values()].filter((talk) => talk.parked?.who === who)
    if (own.length >= maxPerCaller) own[0]?.parked?.abandon()
  }

  function owns(state: unknown): state is string {
    return typeof state === 'string' && state.startsWith(prefix)
  }

  function isLost(state: string): boolean {
    return state.startsWith(prefix + firstMark) && !parked.has(idOf(state))
  }

  async function resume(state: string, replies: unknown, waiting: Waiting): Promise<Step> {
    const { talk, asked } = take(state, waiting.binding)
    const step = attend(talk, waiting)
    const answers = toReplies(asked.questions, replies)
    // An answer belongs to the question it was given to: one that was taken back meanwhile lends it to no other.
    if (answers && talk.asked.delete(asked)) asked.answer.resolve(answers)
    talk.ended?.()
    const [next] = talk.asked
    if (next && !talk.ended) park(talk, next)
    return step
  }

  /** A state is good for one use, by the one it was given to, for the same request. */
  function take(state: string, binding: Binding): { talk: Talk; asked: Asked } {
    const id = idOf(state)
    const talk = parked.get(id)
    const genuine = isEqual(state.slice(state.lastIndexOf('.') + 1), sign(id, binding))
    if (!genuine || !talk?.parked || talk.parked.state !== state) {
      throw new GatewayError('state-invalid', 'This state is not valid, or no longer, or not for this request')
    }
    const { asked, leave } = talk.parked
    leave()
    talk.parked = undefined
    return { talk, asked }
  }

  function sign(id: string, { who, method, params }: Binding): string {
    const { _meta, inputResponses, requestState, ...asked } = params
    const digest = createHash('sha256').update(toSortedJson(asked)).digest('base64url')
    return createHmac('sha256', key)
      .update(JSON.stringify([id, who(), method, digest]))
      .digest('base64url')
  }

  function close(): void {
    for (const talk of parked.values()) talk.parked?.abandon()
  }
}

function idOf(state: string): string {
  return state.slice(prefix.length, Math.max(prefix.length, state.lastIndexOf('.')))
}

/** The answers to exactly what was asked; undefined when one of them is missing. What nobody asked for is left out. */
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

/** One text for one value, however its keys were ordered. */
function toSortedJson(value: JsonObject): string {
  return JSON.stringify(value, (_key, each: unknown) =>
    isObject(each) ? Object.fromEntries(Object.entries(each).toSorted(([a], [b]) => (a < b ? -1 : 1))) : each,
  )
}

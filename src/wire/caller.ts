import type { Approval, Verdict } from '../contract/approval.ts'
import { GatewayError } from '../contract/errors.ts'
import type { JsonObject } from '../contract/json.ts'
import { isObject } from '../lib/json.ts'

/** What a server asks its caller in the middle of a call. */
export type Question = { readonly method: string; readonly params: JsonObject }

/** A question and its reply have the same key, as in the newer era of the protocol. */
export type Questions = Readonly<Record<string, Question>>
export type Replies = Readonly<Record<string, JsonObject>>

export type Progress = { readonly progress: number; readonly total?: number; readonly message?: string }

/** Gets the updates of a resource until `signal` aborts. */
export type Subscriber = { readonly signal: AbortSignal; onUpdated(uri: string): void }

/** The client that waits for one call: how it is asked, told and shown something. The same type for every surface and era. */
export type Caller = {
  /** Aborts when the client cancels the call. */
  readonly signal: AbortSignal
  /** The declared capabilities, in the form of the newer era. */
  readonly capabilities: JsonObject
  /** The lowest level of server logs that the client wants; `any`: the gateway chooses. */
  readonly logLevel: LogLevel | 'any' | undefined
  /** The client has no open request while it is asked: it gets nothing else before it returns with its replies. */
  readonly parks?: true
  /** Rejects with `question-refused`. `signal` aborts when the replies are no longer needed. */
  ask(questions: Questions, signal: AbortSignal): Promise<Replies>
  /** Sends a notification. */
  tell(method: string, params: JsonObject): void
  /** A question of the server was refused, because the client did not declare these capabilities. */
  lacks(required: JsonObject): void
  /** Set when the client asked for progress. */
  readonly onProgress?: ((progress: Progress) => void) | undefined
  /** Whether the request that is open now can receive progress. */
  readonly hearsProgress?: (() => boolean) | undefined
  /** For a subscription. */
  readonly subscriber?: Subscriber | undefined
  /** Shows a waiting approval. Without it the call returns at once as waiting. */
  readonly present?: Present | undefined
  /** Calls back when the answer has left for the client, or never will. Without it the call ends with its answer. */
  readonly onDelivered?: ((listener: () => void) => void) | undefined
}

/**
 * Shows an approval until it is settled or was shown long enough. Returns an answer that was given at the client, which counts
 * where a rule allows `client` as approver.
 */
export type Present = (approval: Approval, wait: Wait) => Promise<ClientAnswer | undefined>
export type Wait = { readonly settled: Promise<void>; readonly signal: AbortSignal }
export type ClientAnswer = { readonly verdict: Verdict; readonly reason?: string | undefined }

/** A client with at least a signal. What is not given, it cannot do. */
export type CallerFacts = Pick<Caller, 'signal'> & Partial<Caller>

export function toCaller(facts: CallerFacts): Caller {
  return { ...mute, ...facts }
}

const mute: Omit<Caller, 'signal'> = {
  capabilities: {},
  logLevel: undefined,
  ask: () => Promise.reject(refusal({ code: -32601, message: 'This client cannot answer questions' })),
  tell() {},
  lacks() {},
}

/** The capability that a question requires, and the part of it. */
type Need = { readonly capability: string; readonly part?: string }

/** Undefined for requests that are never passed to a caller. */
export function needOf({ method, params }: Question): Need | undefined {
  if (method === 'elicitation/create')
    return { capability: 'elicitation', part: params.mode === 'url' ? 'url' : 'form' }
  if (method === 'sampling/createMessage') {
    return params.tools === undefined ? { capability: 'sampling' } : { capability: 'sampling', part: 'tools' }
  }
  return method === 'roots/list' ? { capability: 'roots' } : undefined
}

export function isQuestion(method: string): boolean {
  return needOf({ method, params: {} }) !== undefined
}

/** The capabilities that the questions require and the caller did not declare, in the form of a declaration. */
export function missingFor(caller: Caller, questions: Questions): JsonObject | undefined {
  const missing: JsonObject = {}
  for (const question of Object.values(questions)) {
    const need = needOf(question)
    if (!need || declares(caller.capabilities, need)) continue
    missing[need.capability] = need.part === undefined ? {} : { [need.part]: {} }
  }
  return Object.keys(missing).length > 0 ? missing : undefined
}

/** A declaration of elicitation without a mode means forms. */
function declares(capabilities: JsonObject, { capability, part }: Need): boolean {
  const declared = capabilities[capability]
  if (!isObject(declared)) return false
  if (part === undefined || isObject(declared[part])) return true
  return part === 'form' && !isObject(declared.url)
}

/** The error that the server gets instead of a reply. */
export type Refusal = { readonly code: number; readonly message: string }

export function refusal(said: Refusal): GatewayError {
  return new GatewayError('question-refused', `The caller did not answer the server's question: ${said.message}`, {
    refusal: said,
  })
}

export function toRefusal(error: unknown): Refusal {
  const said = error instanceof GatewayError ? error.details.refusal : undefined
  if (isObject(said) && typeof said.code === 'number' && typeof said.message === 'string') {
    return { code: said.code, message: said.message }
  }
  return { code: -32603, message: 'The caller could not be asked' }
}

/** From the lowest to the highest; the same names in both eras. */
const logLevels = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const
export type LogLevel = (typeof logLevels)[number]

/** The level for callers that did not choose one. */
export const usualLevel: LogLevel = 'info'

export function isLogLevel(value: unknown): value is LogLevel {
  return logLevels.some((level) => level === value)
}

/** Messages with an unknown level are passed on. */
export function isAtLeast(level: unknown, wanted: LogLevel | 'any'): boolean {
  const least = wanted === 'any' ? usualLevel : wanted
  return !isLogLevel(level) || logLevels.indexOf(level) >= logLevels.indexOf(least)
}

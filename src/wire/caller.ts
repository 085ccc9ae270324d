import { GatewayError } from '../contract/errors.ts'
import type { JsonObject } from '../contract/json.ts'
import { isObject } from '../lib/json.ts'

/** One thing that a server wants to know in the middle of a call. */
export type Question = { readonly method: string; readonly params: JsonObject }

/** Questions and their answers belong together by key, as the newer era writes them. */
export type Questions = Readonly<Record<string, Question>>
export type Replies = Readonly<Record<string, JsonObject>>

/** Who waits for the answer to a call, and what can be said to it meanwhile, whichever era it speaks. */
export type Caller = {
  /** What it declared, as the newer era writes it. */
  readonly capabilities: JsonObject
  /** From which level on it wants to hear what the server logs; `any` leaves that to us. */
  readonly logLevel: LogLevel | 'any' | undefined
  /** No request of it is open while it is asked: nobody hears what happens before it comes back with its answer. */
  readonly parks?: true
  /** Rejects with `question-refused`; aborted when nobody wants to know any more. */
  ask(questions: Questions, signal: AbortSignal): Promise<Replies>
  tell(method: string, params: JsonObject): void
  /** The server was refused a question, because the caller did not declare these capabilities. */
  lacks(required: JsonObject): void
}

/** For those who can only wait. */
export const muteCaller: Caller = {
  capabilities: {},
  logLevel: undefined,
  ask: () => Promise.reject(refusal({ code: -32601, message: 'Nobody is there who could answer' })),
  tell() {},
  lacks() {},
}

/** What a question needs its caller to have declared: the capability, and the part of it if there is one. */
type Need = { readonly capability: string; readonly part?: string }

/** Undefined for what no caller is ever asked. */
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

/** The capabilities that a caller would have to declare, in the form in which it would declare them. */
export function missingFor(caller: Caller, questions: Questions): JsonObject | undefined {
  const missing: JsonObject = {}
  for (const question of Object.values(questions)) {
    const need = needOf(question)
    if (!need || declares(caller.capabilities, need)) continue
    missing[need.capability] = need.part === undefined ? {} : { [need.part]: {} }
  }
  return Object.keys(missing).length > 0 ? missing : undefined
}

/** Who declares elicitation without saying which kind means forms. */
function declares(capabilities: JsonObject, { capability, part }: Need): boolean {
  const declared = capabilities[capability]
  if (!isObject(declared)) return false
  if (part === undefined || isObject(declared[part])) return true
  return part === 'form' && !isObject(declared.url)
}

/** What a caller says instead of an answer, so that the server can be told. */
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
  return { code: -32603, message: 'The question could not be put to the caller' }
}

/** From chatty to grave, as both eras name them. */
const logLevels = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const
export type LogLevel = (typeof logLevels)[number]

/** For callers that leave the choice to others. */
export const usualLevel: LogLevel = 'info'

export function isLogLevel(value: unknown): value is LogLevel {
  return logLevels.some((level) => level === value)
}

/** A level that nobody knows is passed on rather than lost. */
export function isAtLeast(level: unknown, wanted: LogLevel | 'any'): boolean {
  const least = wanted === 'any' ? usualLevel : wanted
  return !isLogLevel(level) || logLevels.indexOf(level) >= logLevels.indexOf(least)
}

import type { JsonObject } from '../contract/json.ts'
import { type Caller, isQuestion, missingFor, type Refusal, toRefusal } from './caller.ts'

/** A running request whose caller can be asked. Its time limit is paused while a question is open. */
export type Asker = { readonly caller: Caller; hold(controller: AbortController): () => void }

/** The reply to a server: the raw JSON of a result, or a refusal. */
export type QuestionEnd = { readonly result: JsonObject } | { readonly error: Refusal }

export type QuestionsParts = {
  /** The requests that a message may belong to. `origin` is the request on whose stream it arrived. */
  askers(origin: number | undefined, params: JsonObject): readonly Asker[]
  answer(id: string, end: QuestionEnd): Promise<void>
  /** The server asked while several calls were running on the connection, so the call is not known. */
  onAmbiguous(): void
}

const maxOpen = 64
const maxElicitations = 256
const maxElicitationId = 1024

/** Questions of the older era: requests of the server that do not say which call they belong to. */
export function createQuestions(parts: QuestionsParts) {
  const open = new Map<string, AbortController>()
  const elicitations = new Map<string, Caller>()

  return { receive, cancel, complete }

  /** `id` is raw JSON. */
  function receive(id: string, question: { method: string; params: JsonObject }, origin: number | undefined): void {
    answerOf(toKey(JSON.parse(id)), question, origin)
      .catch((error: unknown): QuestionEnd => ({ error: toRefusal(error) }))
      .then((end) => parts.answer(id, end))
  }

  async function answerOf(
    key: string,
    question: { method: string; params: JsonObject },
    origin: number | undefined,
  ): Promise<QuestionEnd> {
    const { method } = question
    if (!isQuestion(method)) return refuse(-32601, 'Method not found')
    if (open.has(key)) return refuse(-32600, 'A question with this id is still open')
    if (open.size >= maxOpen) return refuse(-32603, 'Too many questions are open')
    const [asker, ...others] = parts.askers(origin, question.params)
    if (!asker) return method === 'roots/list' ? { result: { roots: [] } } : refuse(-32603, 'No call is under way')
    if (others.length > 0) {
      parts.onAmbiguous()
      return refuse(-32603, 'Several calls are under way here, and it is not known which one asks; try again')
    }
    const required = missingFor(asker.caller, { question })
    if (required) {
      asker.caller.lacks(required)
      return refuse(-32601, `The caller does not offer ${method}`)
    }
    return ask(key, question, asker)
  }

  async function ask(
    key: string,
    question: { method: string; params: JsonObject },
    asker: Asker,
  ): Promise<QuestionEnd> {
    const controller = new AbortController()
    open.set(key, controller)
    remember(question.params.elicitationId, asker.caller)
    const release = asker.hold(controller)
    try {
      const { question: result } = await asker.caller.ask({ question }, controller.signal)
      return result ? { result } : refuse(-32603, 'The caller gave no answer')
    } finally {
      open.delete(key)
      release()
    }
  }

  /** The server withdrew a question. */
  function cancel(id: unknown): void {
    open.get(toKey(id))?.abort()
  }

  /** An elicitation at an address was completed: the caller that was asked is notified. */
  function complete(params: JsonObject): void {
    const { elicitationId } = params
    if (typeof elicitationId !== 'string') return
    elicitations.get(elicitationId)?.tell('notifications/elicitation/complete', params)
    elicitations.delete(elicitationId)
  }

  function remember(elicitation: unknown, caller: Caller): void {
    if (typeof elicitation !== 'string' || elicitation.length > maxElicitationId) return
    elicitations.set(elicitation, caller)
    for (const old of elicitations.keys()) {
      if (elicitations.size <= maxElicitations) break
      elicitations.delete(old)
    }
  }
}

/** The same id can be written in several ways, and the server may withdraw its question with another one. */
function toKey(id: unknown): string {
  return JSON.stringify(id ?? null)
}

function refuse(code: number, message: string): QuestionEnd {
  return { error: { code, message } }
}

import type { JsonObject } from '../contract/json.ts'
import { type Caller, isQuestion, missingFor, type Refusal, toRefusal } from './caller.ts'

/** A request under way whose caller can be asked. While somebody thinks, its time stands still. */
export type Asker = { readonly caller: Caller; hold(controller: AbortController): () => void }

/** What a server is told: the raw JSON of a result, or a refusal. */
export type QuestionEnd = { readonly result: JsonObject } | { readonly error: Refusal }

export type QuestionsParts = {
  /** Those to whom a message that came with the answer to `origin`, or on its own, may belong. */
  askers(origin: number | undefined, params: JsonObject): readonly Asker[]
  answer(id: string, end: QuestionEnd): Promise<void>
  /** The server asks while several calls share its connection, so that nobody knows who is meant. */
  onAmbiguous(): void
}

const maxOpen = 64
const maxElicitations = 256
const maxElicitationId = 1024

/** The older era's questions: requests of the server that do not name the call they belong to. */
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

  /** The server no longer wants to know. */
  function cancel(id: unknown): void {
    open.get(toKey(id))?.abort()
  }

  /** What was asked for at an address elsewhere is done: whoever was sent there hears of it. */
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

/** One id can be written in several ways, and the server may take its question back in another one. */
function toKey(id: unknown): string {
  return JSON.stringify(id ?? null)
}

function refuse(code: number, message: string): QuestionEnd {
  return { error: { code, message } }
}

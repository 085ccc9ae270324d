import type { JsonObject } from '../contract/json.ts'
import { type Caller, isQuestion, missingFor, type Refusal, toRefusal } from './caller.ts'

/** A request under way whose caller can be asked. While somebody thinks, its time stands still. */
export type Asker = { readonly caller: Caller; hold(controller: AbortController): () => void }

/** What a server is told: the raw JSON of a result, or a refusal. */
export type QuestionEnd = { readonly result: JsonObject } | { readonly error: Refusal }

export type QuestionsParts = {
  /** Those to whom a message that came with the answer to `origin`, or on its own, may belong. */
  askers(origin: number | undefined): readonly Asker[]
  answer(id: string, end: QuestionEnd): Promise<void>
  /** The server asks while several calls share its connection, so that nobody knows who is meant. */
  onAmbiguous(): void
}

const maxOpen = 64
const maxElicitations = 256

/** The older era's questions: requests of the server that do not name the call they belong to. */
export function createQuestions(parts: QuestionsParts) {
  const open = new Map<string, AbortController>()
  const elicitations = new Map<string, Caller>()

  return { receive, cancel, complete }

  /** `id` is raw JSON. */
  function receive(id: string, question: { method: string; params: JsonObject }, origin: number | undefined): void {
    answerOf(id, question, origin)
      .catch((error: unknown): QuestionEnd => ({ error: toRefusal(error) }))
      .then((end) => parts.answer(id, end))
      .finally(() => open.delete(id))
  }

  async function answerOf(
    id: string,
    question: { method: string; params: JsonObject },
    origin: number | undefined,
  ): Promise<QuestionEnd> {
    const { method } = question
    if (!isQuestion(method)) return refuse(-32601, 'Method not found')
    if (open.size >= maxOpen) return refuse(-32603, 'Too many questions are open')
    const [asker, ...others] = parts.askers(origin)
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
    return ask(id, question, asker)
  }

  async function ask(id: string, question: { method: string; params: JsonObject }, asker: Asker): Promise<QuestionEnd> {
    const controller = new AbortController()
    open.set(id, controller)
    remember(question.params.elicitationId, asker.caller)
    const release = asker.hold(controller)
    try {
      const { question: result } = await asker.caller.ask({ question }, controller.signal)
      return result ? { result } : refuse(-32603, 'The caller gave no answer')
    } finally {
      release()
    }
  }

  /** The server no longer wants to know. */
  function cancel(id: unknown): void {
    open.get(JSON.stringify(id ?? null))?.abort()
  }

  /** What was asked for at an address elsewhere is done: whoever was sent there hears of it. */
  function complete(params: JsonObject): void {
    const { elicitationId } = params
    if (typeof elicitationId !== 'string') return
    elicitations.get(elicitationId)?.tell('notifications/elicitation/complete', params)
    elicitations.delete(elicitationId)
  }

  function remember(elicitation: unknown, caller: Caller): void {
    if (typeof elicitation !== 'string') return
    elicitations.set(elicitation, caller)
    for (const old of elicitations.keys()) {
      if (elicitations.size <= maxElicitations) break
      elicitations.delete(old)
    }
  }
}

function refuse(code: number, message: string): QuestionEnd {
  return { error: { code, message } }
}

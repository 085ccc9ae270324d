import type { GatewayError } from '../contract/errors.ts'
import type { JsonObject } from '../contract/json.ts'
import type { Clock } from '../lib/clock.ts'
import { isObject, JsonError, parseExactJson } from '../lib/json.ts'
import { onAbort } from '../lib/signals.ts'
import { type Question, type Refusal, refusal } from '../wire/caller.ts'
import type { Envelope } from '../wire/envelope.ts'
import type { Reply } from './reply.ts'

/** The open questions of one client. */
export type SessionQuestions = {
  /** Sends a question on the stream of a call. Rejects with `question-refused`. */
  ask(toQuestion: (id: string) => Question, reply: Reply, signal: AbortSignal): Promise<JsonObject>
  /** A reply of the client; ignored if no question has its id. */
  answered(envelope: Envelope & { kind: 'result' | 'error' }, body: Buffer): void
}

const maxOpen = 64
const patienceMs = 600_000

export function createSessionQuestions(clock: Clock): SessionQuestions {
  const open = new Map<string, PromiseWithResolvers<JsonObject>>()
  let asked = 0

  return {
    async ask(toQuestion, reply, signal) {
      if (open.size >= maxOpen) throw refusal({ code: -32603, message: 'Too many questions are open' })
      if (signal.aborted) throw untaken()
      const id = `sallyport-${++asked}`
      const { method, params } = toQuestion(id)
      const answer = Promise.withResolvers<JsonObject>()
      const takeBack = (message: string) => {
        reply.notify('notifications/cancelled', { requestId: id, reason: message })
        answer.reject(refusal({ code: -32603, message }))
      }
      const cancel = clock.after(patienceMs, () => takeBack('Nobody answered in time'))
      open.set(id, answer)
      const unlink = onAbort(signal, () => takeBack('The question was withdrawn'))
      try {
        if (!reply.say({ jsonrpc: '2.0', id, method, params })) throw untaken()
        return await answer.promise
      } finally {
        cancel()
        unlink()
        open.delete(id)
      }
    },
    answered(envelope, body) {
      const id = parsed(Buffer.from(envelope.id))
      const answer = typeof id === 'string' ? open.get(id) : undefined
      if (!answer) return // no open question has this id
      const value = parsed(body.subarray(envelope.span.start, envelope.span.end))
      if (envelope.kind === 'error') return answer.reject(refusal(toRefusal(value)))
      if (!isObject(value)) return answer.reject(refusal({ code: -32603, message: 'The reply is not a valid object' }))
      answer.resolve(value)
    },
  }
}

function untaken(): GatewayError {
  return refusal({ code: -32603, message: 'The caller accepts no questions with this request' })
}

function toRefusal(value: unknown): Refusal {
  const { code, message } = isObject(value) ? value : {}
  return {
    code: typeof code === 'number' ? code : -32603,
    message: typeof message === 'string' ? message.slice(0, 2000) : 'No reason was given',
  }
}

/** Undefined also for a value that is nested too deeply or contains numbers that would change. */
function parsed(json: Buffer): unknown {
  try {
    return parseExactJson(json)
  } catch (error) {
    if (error instanceof JsonError) return undefined
    throw error
  }
}

import { GatewayError, toGatewayError } from '../contract/errors.ts'
import type { JsonObject } from '../contract/json.ts'
import { backoffDelay } from '../lib/backoff.ts'
import { type Clock, sleep } from '../lib/clock.ts'
import { isObject } from '../lib/json.ts'
import { toCancellation } from '../lib/signals.ts'
import { type Answer, memberText } from '../wire/answer.ts'
import { type Caller, isQuestion, missingFor, type Questions, type Replies, toRefusal } from '../wire/caller.ts'

export type RoundsParts = {
  readonly caller: Caller
  readonly clock: Clock
  readonly signal: AbortSignal
  /** Milliseconds left for all rounds together, without the time in which the caller answers questions. */
  readonly leftMs: number
  send(params: JsonObject, maximumMs: number): Promise<Answer>
}

const maxRounds = 64
const pollDelay = { first: 100, most: 2000, factor: 2 }

/**
 * In the newer era, an `input_required` answer contains questions. Sends the request again with the replies until the
 * answer is complete.
 */
export async function completeRounds(first: Answer, params: JsonObject, parts: RoundsParts): Promise<Answer> {
  const { clock } = parts
  const { inputResponses: _answers, requestState: _state, ...asked } = params // drops the replies of an earlier round
  let answer = first
  let left = parts.leftMs
  let rounds = 0
  let pauses = 0
  while (isIncomplete(answer)) {
    const { inputRequests, requestState } = answer.value()
    const questions = toQuestions(inputRequests)
    if (questions && ++rounds > maxRounds) {
      throw new GatewayError(
        'server-broken',
        `The server still asks questions after ${maxRounds} rounds`,
        {},
        { reach: 'sent' },
      )
    }
    const replies = questions && (await ask(questions, parts))
    const since = clock.monotonic()
    if (!replies) await pause(++pauses, parts)
    const next = {
      ...asked,
      ...(replies && { inputResponses: { ...replies } }),
      ...(typeof requestState === 'string' && { requestState }),
    }
    answer = await parts.send(next, Math.max(1, left - (clock.monotonic() - since))).catch(failLater)
    left -= clock.monotonic() - since
    if (left <= 0 && isIncomplete(answer)) {
      const message = 'The answer is still incomplete after the maximum time for a call (`timeout.maximum`)'
      throw new GatewayError('call-timeout', message, {}, { reach: 'sent' })
    }
  }
  return answer
}

/** The first round reached the server. So even if a later round was not sent, the call may have had an effect. */
function failLater(error: unknown): never {
  const failure = toGatewayError(error)
  throw failure.withReach(failure.reach === 'refused' ? 'refused' : 'sent')
}

/** A server that returned no questions is polled, at growing intervals. */
async function pause(count: number, { clock, signal }: RoundsParts): Promise<void> {
  await sleep(clock, backoffDelay(count, pollDelay), signal).catch(() => {
    throw toCancellation(signal, 'sent')
  })
}

export function isIncomplete(answer: Answer): boolean {
  return answer.kind === 'result' && memberText(answer, 'resultType') === '"input_required"'
}

async function ask(questions: Questions, { caller, signal }: RoundsParts): Promise<Replies> {
  const odd = Object.values(questions).find(({ method }) => !isQuestion(method))
  if (odd) {
    const message = `The server asks for ${odd.method.slice(0, 100)}, which is not a valid question to a caller`
    throw new GatewayError('server-broken', message, {}, { reach: 'sent' })
  }
  const required = missingFor(caller, questions)
  if (required) {
    const message = 'The server asks a question that the caller does not support'
    throw new GatewayError('capability-missing', message, { requiredCapabilities: required }, { reach: 'sent' })
  }
  try {
    return await caller.ask(questions, signal)
  } catch (error) {
    if (signal.aborted) throw toCancellation(signal, 'sent')
    return declined(questions, error)
  }
}

/** An unanswered elicitation is cancelled. Other questions cannot be cancelled in the protocol, so the call fails. */
function declined(questions: Questions, error: unknown): Replies {
  const { code, message } = toRefusal(error)
  const replies = Object.entries(questions).map(([key, { method }]): [string, JsonObject] => {
    if (method !== 'elicitation/create') {
      const text = `The caller did not answer ${method}: ${message}`
      throw new GatewayError('question-refused', text, { refusal: { code, message } }, { reach: 'refused' })
    }
    return [key, { action: 'cancel' }]
  })
  return Object.fromEntries(replies)
}

function toQuestions(value: unknown): Questions | undefined {
  if (!isObject(value)) return undefined
  const questions = Object.entries(value).flatMap(([key, each]) => {
    if (!isObject(each) || typeof each.method !== 'string') return []
    return [[key, { method: each.method, params: isObject(each.params) ? each.params : {} }] as const]
  })
  return questions.length > 0 ? Object.fromEntries(questions) : undefined
}

import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { Target } from '../catalog/catalog.ts'
import { Call } from '../contract/call.ts'
import { GatewayError } from '../contract/errors.ts'
import type { JsonObject } from '../contract/json.ts'
import type { CallEnd, OnceKey, ResolvedCall } from '../contract/permit.ts'
import { toCanonicalText } from '../lib/canonical.ts'
import { type Clock, sleep } from '../lib/clock.ts'
import { parseJson } from '../lib/json.ts'
import type { Storage } from '../storage/storage.ts'
import type { KeyEnd, TakenKey } from '../storage/tables/idempotency.ts'
import { createAnswer } from '../wire/answer.ts'
import type { CallOutcome } from './calls.ts'

/** Calls with an idempotency key: of the calls with the same key one runs, and the others get its outcome. */
export type Once = {
  /** The outcome of an earlier call with this key, or a refusal. Waits while that call runs. Undefined if there is none. */
  findEarlier(call: ResolvedCall, signal: AbortSignal): Promise<Earlier | undefined>
  /** The same, by the id of the earlier call instead of its key. */
  findOf(call: string, signal: AbortSignal): Promise<Earlier | undefined>
}

export type Earlier =
  | Extract<CallOutcome, { kind: 'answered' }>
  | { readonly kind: 'refusal'; readonly error: GatewayError }

const mostWaitMs = 30_000
const firstPauseMs = 20
const longestPauseMs = 500

type Find = () => Promise<TakenKey | undefined>

export function createOnce({ keys, clock }: { keys: Pick<Storage['keys'], 'find' | 'findOf'>; clock: Clock }): Once {
  return {
    async findEarlier({ principalId, once }, signal) {
      return once && untilEnded(() => keys.find(principalId, once.key), signal, once.hash)
    },
    findOf: (call, signal) => untilEnded(() => keys.findOf(call), signal),
  }

  async function untilEnded(find: Find, signal: AbortSignal, hash?: string): Promise<Earlier | undefined> {
    const end = clock.monotonic() + mostWaitMs
    for (let pause = firstPauseMs; ; pause = Math.min(pause * 2, longestPauseMs)) {
      const taken = await find()
      if (!taken) return undefined
      if (hash !== undefined && taken.hash !== hash) return refusal(conflict())
      if (taken.state === 'done') return toAnswered(taken.response)
      if (taken.state === 'unknown') return refusal(unknown(taken.call))
      if (clock.monotonic() >= end) return refusal(busy(taken.call))
      await sleep(clock, pause, signal).catch(() => {
        throw new GatewayError('call-cancelled', 'The caller stopped waiting for the first call')
      })
    }
  }
}

type Given = { readonly arguments: JsonObject; readonly meta?: JsonObject | undefined }

/** The hash is the same for the same tool with the same arguments and `_meta`, in any order of object keys. */
export function toOnceKey(key: string, { server, scope, publicName }: Target, given: Given): OnceKey {
  const { arguments: args, meta } = given
  const text = toCanonicalText([server, scope, publicName, args, ...(meta ? [meta] : [])])
  return { key, hash: createHash('sha256').update(text).digest('hex') }
}

/** The key is released if the call certainly changed nothing. If the outcome is not known, the call must not run again. */
export function toKeyEnd(
  { risk }: Pick<ResolvedCall, 'risk'>,
  outcome: CallOutcome,
  { unsent }: Pick<CallEnd, 'unsent'>,
): KeyEnd {
  if (outcome.kind === 'answered') return { kind: 'done', response: toResponse(outcome) }
  const isCertain = unsent || risk === 'read' || outcome.call.state === 'failed'
  return isCertain ? { kind: 'released' } : { kind: 'unknown' }
}

const Response = z.object({ call: Call, kind: z.enum(['result', 'error']), answer: z.string() })

function toResponse({ call, answer }: Extract<CallOutcome, { kind: 'answered' }>): string {
  return JSON.stringify({ call, kind: answer.kind, answer: answer.bytes.toString('utf8') })
}

function toAnswered(response: string): Earlier {
  const { call, kind, answer } = Response.parse(parseJson(Buffer.from(response)))
  return { kind: 'answered', call, answer: createAnswer(kind, Buffer.from(answer)), replayed: true }
}

function refusal(error: GatewayError): Earlier {
  return { kind: 'refusal', error }
}

function conflict(): GatewayError {
  return new GatewayError(
    'idempotency-conflict',
    'This idempotency key was used for another tool, or with other arguments or `_meta`',
  )
}

function unknown(first: string): GatewayError {
  const message =
    'It is not known whether the first call with this idempotency key took effect, so the call is not sent again'
  return new GatewayError('call-unknown', message, { first, repeated: true })
}

function busy(first: string): GatewayError {
  return new GatewayError('idempotency-busy', 'The first call with this idempotency key is still running', {
    first,
    retryAfter: 5,
  })
}

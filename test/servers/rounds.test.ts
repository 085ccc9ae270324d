import { describe, expect, it } from 'vitest'
import { GatewayError } from '../../src/contract/errors.ts'
import type { JsonObject } from '../../src/contract/json.ts'
import { systemClock } from '../../src/lib/clock.ts'
import { completeRounds } from '../../src/servers/rounds.ts'
import { type Answer, toResultAnswer } from '../../src/wire/answer.ts'
import { type Caller, type Questions, refusal, toCaller } from '../../src/wire/caller.ts'
import { createMovableClock } from '../scenarios/mcp/clock.ts'

const never = new AbortController().signal
const form = { method: 'elicitation/create', params: { message: 'Who?' } }
const everything = { elicitation: { form: {}, url: {} }, sampling: { tools: {} }, roots: {} }

function needs(inputRequests: JsonObject | undefined, requestState?: string): Answer {
  const asked = { ...(inputRequests && { inputRequests }), ...(requestState !== undefined && { requestState }) }
  return toResultAnswer({ resultType: 'input_required', ...asked })
}

const done = toResultAnswer({ resultType: 'complete', content: [] })

/** Runs the rounds with a server that gives these answers, one after the other. */
async function run(
  answers: readonly Answer[],
  options: { caller?: Partial<Caller>; params?: JsonObject; signal?: AbortSignal } = {},
) {
  const sent: JsonObject[] = []
  const asked: Questions[] = []
  const caller: Caller = {
    ...toCaller({ signal: never }),
    capabilities: everything,
    async ask(questions) {
      asked.push(questions)
      return Object.fromEntries(Object.keys(questions).map((key): [string, JsonObject] => [key, { action: 'accept' }]))
    },
    ...options.caller,
  }
  const [first = done, ...rest] = answers
  const ended = completeRounds(first, options.params ?? { name: 'x' }, {
    caller,
    clock: systemClock,
    signal: options.signal ?? new AbortController().signal,
    leftMs: 60_000,
    async send(params) {
      sent.push(params)
      return rest[sent.length - 1] ?? done
    },
  })
  return { sent, asked, ended: await ended.catch((error: unknown) => error) }
}

describe('an unfinished answer of the newer era', () => {
  it('is completed with the answers and with the state it came with', async () => {
    const { sent, ended } = await run([needs({ a: form }, 's1'), needs({ b: form }, 's2')])
    expect(sent).toEqual([
      { name: 'x', inputResponses: { a: { action: 'accept' } }, requestState: 's1' },
      { name: 'x', inputResponses: { b: { action: 'accept' } }, requestState: 's2' },
    ])
    expect(ended).toBe(done)
  })

  it('that wants nothing but patience is asked for again', async () => {
    const { sent, asked } = await run([needs(undefined, 'later')])
    expect([asked, sent]).toEqual([[], [{ name: 'x', requestState: 'later' }]])
  })

  it('is not completed with what the caller had brought along for an earlier round', async () => {
    const params = { name: 'x', inputResponses: { old: {} }, requestState: 'old' }
    const { sent } = await run([needs({ a: form }), needs(undefined, 'later')], { params })
    expect(sent).toEqual([
      { name: 'x', inputResponses: { a: { action: 'accept' } } },
      { name: 'x', requestState: 'later' },
    ])
  })

  it.each(['tools/call', 'ping', 'notifications/message', 'anything/else'])(
    'that wants %s from the caller is broken, and nobody is asked',
    async (method) => {
      const { asked, sent, ended } = await run([needs({ a: form, b: { method, params: {} } })])
      expect(ended).toMatchObject({ code: 'server-broken' })
      expect([asked, sent]).toEqual([[], []])
    },
  )

  it('for which the caller declared too little fails with what is missing', async () => {
    const capabilities = { elicitation: {} }
    const url = { method: 'elicitation/create', params: { mode: 'url' } }
    const asksBoth = needs({ a: form, b: url, c: { method: 'roots/list' } })
    const { ended } = await run([asksBoth], { caller: { capabilities } })
    expect(ended).toMatchObject({
      code: 'capability-missing',
      details: { requiredCapabilities: { elicitation: { url: {} }, roots: {} } },
    })
  })

  it('is completed by a cancellation when a person does not answer, under whatever key', async () => {
    const ask = () => Promise.reject(refusal({ code: -1, message: 'Gone for lunch' }))
    const inputRequests = JSON.parse(
      '{"__proto__":{"method":"elicitation/create"},"a":{"method":"elicitation/create"}}',
    )
    const { sent } = await run([needs(inputRequests)], { caller: { ask } })
    expect(JSON.stringify(sent[0]?.inputResponses)).toBe('{"__proto__":{"action":"cancel"},"a":{"action":"cancel"}}')
  })

  it('fails when a model does not answer: there is no word for that', async () => {
    const ask = () => Promise.reject(refusal({ code: -1, message: 'No' }))
    const { ended, sent } = await run([needs({ a: { method: 'sampling/createMessage' } })], { caller: { ask } })
    expect(ended).toMatchObject({ code: 'question-refused', reach: 'refused' })
    expect(sent).toEqual([])
  })

  it('is not completed for a caller who has gone', async () => {
    const controller = new AbortController()
    const ask = async () => {
      controller.abort()
      throw refusal({ code: -1, message: 'Gone' })
    }
    const { ended, sent } = await run([needs({ a: form })], { caller: { ask }, signal: controller.signal })
    expect(ended).toMatchObject({ code: 'call-cancelled' })
    expect(sent).toEqual([])
  })

  it('that wants patience is given up at once when its caller goes', async () => {
    const controller = new AbortController()
    setImmediate(() => controller.abort())
    const { ended, sent } = await run([needs(undefined, 'later')], { signal: controller.signal })
    expect(ended).toMatchObject({ code: 'call-cancelled' })
    expect(sent).toEqual([])
  })

  it('may take as long as a call may, all rounds together, and the time to think does not count', async () => {
    const clock = createMovableClock()
    const given: number[] = []
    const ask = async () => {
      clock.advance(500_000)
      return { a: { action: 'accept' } }
    }
    const ended = completeRounds(
      needs({ a: form }),
      {},
      {
        caller: { ...toCaller({ signal: never }), capabilities: everything, ask },
        clock,
        signal: new AbortController().signal,
        leftMs: 60_000,
        async send(_params, maximumMs) {
          given.push(Math.round(maximumMs / 1000))
          clock.advance(25_000)
          return needs({ a: form })
        },
      },
    )
    await expect(ended).rejects.toMatchObject({ code: 'call-timeout', reach: 'sent' })
    expect(given).toEqual([60, 35, 10])
  })

  it('ends after 64 rounds', async () => {
    const { ended, asked } = await run(Array.from({ length: 100 }, () => needs({ a: form })))
    expect(ended).toMatchObject({ code: 'server-broken', reach: 'sent' })
    expect(asked.length).toBe(64)
  })
})

it('takes a later round that was not sent for no proof that nothing happened: the first one has arrived', async () => {
  const ended = completeRounds(
    needs(undefined, 'state'),
    { name: 'x' },
    {
      caller: toCaller({ signal: never }),
      clock: systemClock,
      signal: new AbortController().signal,
      leftMs: 60_000,
      send: () => Promise.reject(new GatewayError('connect-failed', 'Nobody listens there', {}, { reach: 'unsent' })),
    },
  )
  await expect(ended).rejects.toMatchObject({ code: 'connect-failed', reach: 'sent' })
})

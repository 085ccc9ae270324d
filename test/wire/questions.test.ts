import { describe, expect, it } from 'vitest'
import { GatewayError } from '../../src/contract/errors.ts'
import type { JsonObject } from '../../src/contract/json.ts'
import { isObject } from '../../src/lib/json.ts'
import { type Caller, type Question, type Replies, refusal, toCaller } from '../../src/wire/caller.ts'
import { createLegacyCodec } from '../../src/wire/legacy.ts'
import { createPeer, type RequestOptions } from '../../src/wire/peer.ts'
import { type Asker, createQuestions } from '../../src/wire/questions.ts'
import { createMovableClock } from '../scenarios/mcp/clock.ts'

const capabilities = { elicitation: { form: {} }, sampling: {}, roots: {} }

/** Our end of a link to a server of the older era, with a test in the place of the server. */
function createLink() {
  const clock = createMovableClock()
  const sent: JsonObject[] = []
  const seen = { ambiguous: 0 }
  const peer = createPeer({
    clock,
    codec: createLegacyCodec({ name: 'tester', version: '1' }),
    cancelsByClosing: false,
    clean: (params) => params,
    carrier: {
      async send(message) {
        message.sent()
        const value: unknown = JSON.parse(message.body.toString())
        if (isObject(value)) sent.push(value)
      },
    },
    onNotification() {},
    onAmbiguous: () => void seen.ambiguous++,
  })
  const say = (message: JsonObject, origin?: number) =>
    peer.receive(Buffer.from(JSON.stringify({ jsonrpc: '2.0', ...message })), origin)
  return {
    peer,
    clock,
    sent,
    seen,
    say,
    raw: (text: string) => peer.receive(Buffer.from(text)),
    ask: (id: unknown, origin?: number, params: JsonObject = { message: 'Who?' }) =>
      say({ id: id as string, method: 'elicitation/create', params }, origin),
    /** What the server has been told in answer to its question. */
    answersTo: (id: unknown) => sent.filter((message) => message.method === undefined && message.id === id),
    call(caller: Caller | undefined, options: Partial<RequestOptions> = {}) {
      const controller = new AbortController()
      const ended = peer.request(
        'tools/call',
        { name: 'x' },
        { signal: controller.signal, timeoutMs: 1000, caller, ...options },
      )
      ended.catch(() => {})
      return { ended, cancel: () => controller.abort() }
    },
  }
}

type Asked = {
  readonly question: Question
  answer(reply: JsonObject): void
  refuse(): void
  readonly signal: AbortSignal
}

function createListener(): Caller & { readonly asked: Asked[]; readonly told: JsonObject[] } {
  const asked: Asked[] = []
  const told: JsonObject[] = []
  return {
    ...toCaller({ signal: new AbortController().signal }),
    capabilities,
    asked,
    told,
    tell: (method, params) => void told.push({ method, params }),
    ask({ question }, signal) {
      const { promise, resolve, reject } = Promise.withResolvers<Replies>()
      const taken = () => reject(refusal({ code: -32603, message: 'taken back' }))
      signal.addEventListener('abort', taken, { once: true })
      if (question) asked.push({ question, signal, answer: (reply) => resolve({ question: reply }), refuse: taken })
      return promise
    },
  }
}

const settled = () => new Promise(setImmediate)

describe('a question of a server', () => {
  it('goes to the call on whose stream it came, and its answer back to the question', async () => {
    const link = createLink()
    const [first, second] = [createListener(), createListener()]
    link.call(first)
    link.call(second)
    link.ask('of-2', 2)
    link.ask('of-1', 1)
    expect([first.asked.length, second.asked.length]).toEqual([1, 1])
    first.asked[0]?.answer({ action: 'accept', content: { for: 1 } })
    second.asked[0]?.answer({ action: 'accept', content: { for: 2 } })
    await settled()
    expect(link.answersTo('of-1')).toMatchObject([{ result: { content: { for: 1 } } }])
    expect(link.answersTo('of-2')).toMatchObject([{ result: { content: { for: 2 } } }])
    expect(link.seen.ambiguous).toBe(0)
  })

  it.each([
    ['without a stream', undefined],
    ['on the standing stream', 0],
  ])('that comes %s is put to the one call under way, and to nobody while there are several', async (_how, origin) => {
    const link = createLink()
    const [first, second] = [createListener(), createListener()]
    link.call(first)
    link.ask('clear', origin)
    expect(first.asked.length).toBe(1)
    link.call(second)
    link.ask('unclear', origin)
    await settled()
    expect([first.asked.length, second.asked.length]).toEqual([1, 0])
    expect(link.answersTo('unclear')).toMatchObject([{ error: { code: -32603 } }])
    expect(link.seen.ambiguous).toBe(1)
  })

  it('is put to nobody when it comes on the stream of a call that is over', async () => {
    const link = createLink()
    const [first, second] = [createListener(), createListener()]
    link.call(first)
    link.call(second)
    link.say({ id: 1, result: {} })
    link.ask('late', 1)
    await settled()
    expect([first.asked.length, second.asked.length]).toEqual([0, 0])
    expect(link.answersTo('late')).toMatchObject([{ error: { code: -32603 } }])
  })

  it('about roots has an empty answer where there is nobody to ask', async () => {
    const link = createLink()
    link.say({ id: 'r', method: 'roots/list' })
    await settled()
    expect(link.answersTo('r')).toMatchObject([{ result: { roots: [] } }])
  })

  it('is refused where the caller did not declare it, and the caller hears what it lacks', async () => {
    const link = createLink()
    const lacked: JsonObject[] = []
    const caller = { ...createListener(), lacks: (required: JsonObject) => void lacked.push(required) }
    link.call(caller)
    link.ask('url', 1, { mode: 'url', url: 'https://example.com', elicitationId: 'e' })
    link.say({ id: 'tools', method: 'sampling/createMessage', params: { tools: [] } }, 1)
    link.say({ id: 'odd', method: 'tools/call', params: { name: 'x' } }, 1)
    await settled()
    expect(lacked).toEqual([{ elicitation: { url: {} } }, { sampling: { tools: {} } }])
    for (const id of ['url', 'tools', 'odd']) expect(link.answersTo(id)).toMatchObject([{ error: { code: -32601 } }])
    expect(caller.asked).toEqual([])
  })

  it.each([
    ['text', '"a"'],
    ['a number of ours', '1'],
    ['text that looks like a number of ours', '"1"'],
    ['a fraction', '1.50'],
    ['nothing', '""'],
    ['a very large number', '123456789012345678901234567890'],
    ['escaped text', '"\\u0061\\u0062"'],
    ['the name of a built-in', '"__proto__"'],
  ])('may have %s for its id, and gets it back as it was written', async (_what, id) => {
    const link = createLink()
    const caller = createListener()
    const call = link.call(caller)
    link.raw(`{"jsonrpc":"2.0","id":${id},"method":"elicitation/create","params":{"message":"?"}}`)
    caller.asked[0]?.answer({ action: 'decline' })
    await settled()
    const [answer] = link.sent.filter((message) => message.method === undefined)
    expect(answer).toMatchObject({ id: JSON.parse(id), result: { action: 'decline' } })
    link.say({ id: 1, result: {} })
    await expect(call.ended).resolves.toMatchObject({ kind: 'result' })
  })

  it('that stands open is not asked a second time under the same id, however it is written', async () => {
    const link = createLink()
    const caller = createListener()
    link.call(caller)
    link.ask('ab')
    for (let again = 0; again < 200; again++) link.ask('ab')
    link.raw('{"jsonrpc":"2.0","id":"\\u0061b","method":"elicitation/create","params":{}}')
    await settled()
    expect(caller.asked.length).toBe(1)
    caller.asked[0]?.answer({ action: 'accept' })
    await settled()
    expect(link.answersTo('ab').filter((answer) => 'result' in answer)).toHaveLength(1)
    link.ask('ab')
    expect(caller.asked.length).toBe(2)
  })

  it('is taken back by the server that asked it, even after an id was used twice or written in another way', async () => {
    const link = createLink()
    const caller = createListener()
    link.call(caller)
    link.raw('{"jsonrpc":"2.0","id":"\\u0061","method":"elicitation/create","params":{}}')
    link.ask('a')
    await settled()
    link.say({ method: 'notifications/cancelled', params: { requestId: 'a' } })
    expect(caller.asked.map(({ signal }) => signal.aborted)).toEqual([true])
  })

  it('is one of at most 64 that are open', async () => {
    const link = createLink()
    const caller = createListener()
    link.call(caller)
    for (let id = 0; id < 100; id++) link.ask(`q${id}`)
    await settled()
    expect(caller.asked.length).toBe(64)
    expect(link.answersTo('q99')).toMatchObject([{ error: { code: -32603 } }])
  })

  it('is taken back when its call ends without it', async () => {
    const link = createLink()
    const caller = createListener()
    const call = link.call(caller)
    link.ask('q', 1)
    link.say({ id: 1, result: { early: true } })
    await call.ended
    expect(caller.asked[0]?.signal.aborted).toBe(true)
  })

  it('ends with the call that its caller takes back, and the server hears of it', async () => {
    const link = createLink()
    const caller = createListener()
    const call = link.call(caller)
    link.ask('q')
    call.cancel()
    await expect(call.ended).rejects.toMatchObject({ code: 'call-cancelled' })
    expect(caller.asked[0]?.signal.aborted).toBe(true)
    expect(link.sent).toContainEqual(
      expect.objectContaining({ method: 'notifications/cancelled', params: expect.objectContaining({ requestId: 1 }) }),
    )
  })

  it('ends with the link', async () => {
    const link = createLink()
    const caller = createListener()
    const call = link.call(caller)
    link.ask('q')
    link.peer.close(new GatewayError('server-broken', 'gone'))
    await expect(call.ended).rejects.toMatchObject({ code: 'server-broken' })
    expect(caller.asked[0]?.signal.aborted).toBe(true)
  })

  it('with parameters that only look like built-ins reaches its caller whole', () => {
    const link = createLink()
    const caller = createListener()
    link.call(caller)
    link.raw(
      '{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"__proto__":{"mode":"url"},"message":"m"}}',
    )
    expect(JSON.stringify(caller.asked[0]?.question.params)).toBe('{"__proto__":{"mode":"url"},"message":"m"}')
  })
})

describe('a route for questions', () => {
  const [first, second] = ['first', 'second'].map((said): Asker => {
    const ask = async () => ({ question: { said } })
    return { caller: { ...createListener(), ask }, hold: () => () => {} }
  })

  /** What the server hears when each of two calls raises a question. */
  async function heardOn(route: (origin: number | undefined) => (Asker | undefined)[]): Promise<unknown[]> {
    const heard: unknown[] = []
    const questions = createQuestions({
      askers: (origin) => route(origin).filter((asker) => asker !== undefined),
      answer: async (id, end) => void heard.push([id, 'result' in end ? end.result.said : 'refused']),
      onAmbiguous() {},
    })
    questions.receive('1', { method: 'roots/list', params: {} }, 1)
    questions.receive('2', { method: 'roots/list', params: {} }, 2)
    await settled()
    return heard
  }

  const right = [
    ['1', 'first'],
    ['2', 'second'],
  ]

  it('leads to the call of the stream', async () => {
    expect(await heardOn((origin) => [origin === 1 ? first : second])).toEqual(right)
  })

  it('on which the last caller wins gives one caller the question of another, and would be noticed', async () => {
    expect(await heardOn(() => [second])).not.toEqual(right)
  })

  it('that does not know refuses both rather than to guess', async () => {
    expect(await heardOn(() => [first, second])).toEqual([
      ['1', 'refused'],
      ['2', 'refused'],
    ])
  })
})

describe('the time of a call', () => {
  it('stands still while somebody thinks, and runs on afterwards', async () => {
    const link = createLink()
    const caller = createListener()
    const call = link.call(caller, { timeoutMs: 1000, maximumMs: 5000 })
    link.ask('q')
    link.clock.advance(500_000)
    caller.asked[0]?.answer({ action: 'accept' })
    await settled()
    expect(link.peer.inFlight()).toBe(1)
    link.clock.advance(1100)
    await expect(call.ended).rejects.toMatchObject({ code: 'call-timeout' })
  })

  it('stands still once, however many think at the same time', async () => {
    const link = createLink()
    const caller = createListener()
    const call = link.call(caller, { timeoutMs: 1000, maximumMs: 5000, onProgress() {} })
    for (let id = 0; id < 10; id++) link.ask(`q${id}`)
    link.clock.advance(60_000)
    for (const { answer } of caller.asked) answer({ action: 'accept' })
    await settled()
    const progress = () => link.say({ method: 'notifications/progress', params: { progressToken: 1, progress: 1 } })
    for (let step = 0; step < 10; step++) {
      progress()
      link.clock.advance(900)
    }
    expect(link.peer.inFlight()).toBe(0)
    await expect(call.ended).rejects.toMatchObject({ code: 'call-timeout' })
  })

  it('does not stand still for what the server reports while somebody thinks', async () => {
    const link = createLink()
    const caller = createListener()
    link.call(caller, { timeoutMs: 1000, maximumMs: 5000, onProgress() {} })
    link.ask('q')
    link.say({ method: 'notifications/progress', params: { progressToken: 1, progress: 1 } })
    link.clock.advance(60_000)
    expect(link.peer.inFlight()).toBe(1)
  })
})

describe('what a server logs', () => {
  it('goes to the call on whose stream it came, or to the only one there is', () => {
    const link = createLink()
    const [first, second] = [createListener(), createListener()]
    const log = (data: string, origin?: number) =>
      link.say({ method: 'notifications/message', params: { level: 'info', data } }, origin)
    link.call(first)
    log('alone')
    link.call(second)
    log('of nobody')
    log('of the second', 2)
    expect(first.told).toMatchObject([{ params: { data: 'alone' } }])
    expect(second.told).toMatchObject([{ params: { data: 'of the second' } }])
  })
})

describe('an address where something is done', () => {
  const url = (elicitationId: string) => ({ mode: 'url', url: 'https://example.com', elicitationId })
  const urlCaller = () => ({ ...createListener(), capabilities: { elicitation: { url: {} } } })

  it('is told to be done to the one who was sent there', () => {
    const link = createLink()
    const [first, second] = [urlCaller(), urlCaller()]
    link.call(first)
    link.call(second)
    link.ask('q', 2, url('e-1'))
    link.say({ method: 'notifications/elicitation/complete', params: { elicitationId: 'e-1' } })
    link.say({ method: 'notifications/elicitation/complete', params: { elicitationId: 'e-1' } })
    expect([first.told.length, second.told.length]).toEqual([0, 1])
  })

  it('is not remembered under an id that is longer than any that is meant to be kept', () => {
    const link = createLink()
    const caller = urlCaller()
    const long = 'e'.repeat(100_000)
    link.call(caller)
    link.ask('q', 1, url(long))
    expect(caller.asked.length).toBe(1)
    link.say({ method: 'notifications/elicitation/complete', params: { elicitationId: long } })
    expect(caller.told).toEqual([])
  })
})

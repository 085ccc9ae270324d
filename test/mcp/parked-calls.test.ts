import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { JsonObject } from '../../src/contract/json.ts'
import { createIds } from '../../src/lib/ids.ts'
import {
  createParkedCalls,
  type OpenRequest,
  type ParkedCalls,
  type ParkingCaller,
  type StateOwner,
  type Step,
} from '../../src/mcp/parked-calls.ts'
import { type Answer, toResultAnswer } from '../../src/wire/answer.ts'
import type { Question, Questions, Replies } from '../../src/wire/caller.ts'
import { createMovableClock } from '../scenarios/mcp/clock.ts'

const name: Question = { method: 'elicitation/create', params: { message: 'What is your name?' } }
const colour: Question = { method: 'elicitation/create', params: { message: 'Which colour?' } }
const owner: StateOwner = {
  who: () => 'agent:a /mcp',
  method: 'tools/call',
  params: { name: 'greet', arguments: { a: 1 } },
}
const never = new AbortController().signal

function createParts() {
  const clock = createMovableClock()
  return { clock, parkedCalls: createParkedCalls({ instance: 'one', clock, ids: createIds() }) }
}

function waitingAs(changes: Partial<StateOwner> = {}): OpenRequest & { hangUp(): void; told: string[] } {
  const controller = new AbortController()
  const told: string[] = []
  return {
    owner: { ...owner, ...changes },
    onGone(listener) {
      controller.signal.addEventListener('abort', listener)
      return () => controller.signal.removeEventListener('abort', listener)
    },
    tell: (method) => void told.push(method),
    hearsProgress: false,
    onDelivered: (listener) => listener(),
    hangUp: () => controller.abort(),
    told,
  }
}

/** A call that asks once and answers with what it was told; `ended` says how it went, whoever hears of it. */
function beginAsking(parkedCalls: ParkedCalls, questions: Questions = { question: name }, waiting = waitingAs()) {
  const heard: unknown[] = []
  const step = parkedCalls.begin(waiting, (end) => asking(end, questions, heard))
  return { step, heard, waiting }
}

async function asking(end: ParkingCaller, questions: Questions, heard: unknown[]): Promise<Answer> {
  const replies = await end.ask(questions, end.signal).catch((error: unknown) => {
    heard.push(error)
    throw error
  })
  heard.push(replies)
  return toResultAnswer({ ...replies })
}

async function answerOf(replies: Promise<Replies>): Promise<Answer> {
  return toResultAnswer({ ...(await replies) })
}

async function parkedState(step: Promise<Step>): Promise<string> {
  const reached = await step
  if (reached.kind !== 'questions') throw new Error('The call does not ask')
  return reached.state
}

const resultOf = (step: Step): unknown => (step.kind === 'answer' ? step.answer.value() : step.questions)
const yes: Replies = { question: { action: 'accept', content: { name: 'Ada' } } }

describe('a parked call', () => {
  it('goes on with the answers of whoever it was parked for', async () => {
    const { parkedCalls } = createParts()
    const state = await parkedState(beginAsking(parkedCalls).step)
    expect(resultOf(await parkedCalls.resume(state, yes, waitingAs()))).toEqual(yes)
  })

  it('is taken up by a state once and never again', async () => {
    const { parkedCalls } = createParts()
    const state = await parkedState(beginAsking(parkedCalls).step)
    await parkedCalls.resume(state, yes, waitingAs())
    await expect(parkedCalls.resume(state, yes, waitingAs())).rejects.toMatchObject({ code: 'state-invalid' })
  })

  it.each<[string, Partial<StateOwner>]>([
    ['by another principal, or at another address', { who: () => 'agent:b /mcp' }],
    ['for another method', { method: 'prompts/get' }],
    ['for another name', { params: { name: 'other', arguments: { a: 1 } } }],
    ['for other arguments', { params: { name: 'greet', arguments: { a: 2 } } }],
    ['with further parameters', { params: { name: 'greet', arguments: { a: 1 }, more: true } }],
  ])('is not taken up %s, and still waits for its own caller', async (_what, changes) => {
    const { parkedCalls } = createParts()
    const { step, heard } = beginAsking(parkedCalls)
    const state = await parkedState(step)
    await expect(parkedCalls.resume(state, yes, waitingAs(changes))).rejects.toMatchObject({ code: 'state-invalid' })
    expect(heard).toEqual([])
    expect(resultOf(await parkedCalls.resume(state, yes, waitingAs()))).toEqual(yes)
  })

  it('does not mind in which order the keys of its arguments come back', async () => {
    const { parkedCalls } = createParts()
    const given = { name: 'x', arguments: { a: 1, b: { c: 2, d: [3, { e: 4, f: 5 }] } } }
    const turned = { arguments: { b: { d: [3, { f: 5, e: 4 }], c: 2 }, a: 1 }, name: 'x' }
    const { step } = beginAsking(parkedCalls, { question: name }, waitingAs({ params: given }))
    const state = await parkedState(step)
    expect(resultOf(await parkedCalls.resume(state, yes, waitingAs({ params: turned })))).toEqual(yes)
  })

  it('is not taken up by a state that differs in a single place', async () => {
    const { parkedCalls } = createParts()
    const { step, heard } = beginAsking(parkedCalls)
    const state = await parkedState(step)
    await fc.assert(
      fc.asyncProperty(fc.nat(state.length - 1), fc.string({ maxLength: 2 }), async (at, piece) => {
        const changed = `${state.slice(0, at)}${piece}${state.slice(at + 1)}`
        fc.pre(changed !== state)
        await expect(parkedCalls.resume(changed, yes, waitingAs())).rejects.toMatchObject({ code: 'state-invalid' })
      }),
    )
    for (const cut of [state.slice(0, -1), `${state}A`, `${state}.`, 'sp1.', 'sp1..', 'sp1.one.1.x.y'])
      await expect(parkedCalls.resume(cut, yes, waitingAs())).rejects.toMatchObject({ code: 'state-invalid' })
    expect(heard).toEqual([])
  })

  it('belongs to the gateway that parked it', async () => {
    const [here, elsewhere] = [createParts(), createParts()]
    const state = await parkedState(beginAsking(elsewhere.parkedCalls).step)
    beginAsking(here.parkedCalls)
    expect(here.parkedCalls.owns(state)).toBe(true)
    await expect(here.parkedCalls.resume(state, yes, waitingAs())).rejects.toMatchObject({ code: 'state-invalid' })
  })

  it('is given up when nobody comes back for ten minutes', async () => {
    const { parkedCalls, clock } = createParts()
    const { step, heard } = beginAsking(parkedCalls)
    const state = await parkedState(step)
    clock.advance(599_000)
    expect(heard).toEqual([])
    clock.advance(2000)
    await expect.poll(() => heard).toMatchObject([{ code: 'question-refused' }])
    await expect(parkedCalls.resume(state, yes, waitingAs())).rejects.toMatchObject({ code: 'state-invalid' })
  })

  it.each<[string, unknown]>([
    ['no answers', undefined],
    ['answers that are no object', ['question']],
    ['an answer that is no object', { question: 'yes' }],
    ['answers to something else', { other: { action: 'accept' } }],
    ['one answer of two', { question: { action: 'accept' } }],
  ])('asks again, under a new state, when it is sent %s', async (_what, replies) => {
    const { parkedCalls } = createParts()
    const questions = { question: name, second: colour }
    const state = await parkedState(beginAsking(parkedCalls, questions).step)
    const again = await parkedCalls.resume(state, replies, waitingAs())
    expect(again).toMatchObject({ kind: 'questions', questions })
    const next = await parkedState(Promise.resolve(again))
    expect(next).not.toBe(state)
    await expect(parkedCalls.resume(state, yes, waitingAs())).rejects.toMatchObject({ code: 'state-invalid' })
    const both = { ...yes, second: { action: 'decline' } }
    expect(resultOf(await parkedCalls.resume(next, { ...both, extra: { action: 'accept' } }, waitingAs()))).toEqual(
      both,
    )
  })

  it('gets answers under every key a server can choose', async () => {
    const { parkedCalls } = createParts()
    const keys = ['__proto__', 'constructor', 'toString', '', '0', 'é\n']
    const questions: Questions = Object.fromEntries(keys.map((key) => [key, name]))
    const replies = Object.fromEntries(
      keys.map((key): [string, JsonObject] => [key, { action: 'decline', content: { key } }]),
    )
    const { step, heard } = beginAsking(parkedCalls, questions)
    await parkedCalls.resume(await parkedState(step), replies, waitingAs())
    expect(JSON.stringify(heard[0])).toBe(JSON.stringify(replies))
  })

  it('takes no answer for its next question that was given to one taken back', async () => {
    const { parkedCalls } = createParts()
    const first = new AbortController()
    const heard: unknown[] = []
    const step = parkedCalls.begin(waitingAs(), async (end) => {
      await end.ask({ question: name }, first.signal).catch(() => {})
      return asking(end, { question: colour }, heard)
    })
    const state = await parkedState(step)
    first.abort()
    await new Promise(setImmediate) // until the second has been asked
    const next = await parkedCalls.resume(state, yes, waitingAs())
    expect(resultOf(next)).toEqual({ question: colour })
    expect(heard).toEqual([])
    const red = { question: { action: 'accept', content: { colour: 'red' } } }
    expect(resultOf(await parkedCalls.resume(await parkedState(Promise.resolve(next)), red, waitingAs()))).toEqual(red)
  })

  it('puts questions that came at the same time one after the other', async () => {
    const { parkedCalls } = createParts()
    const step = parkedCalls.begin(waitingAs(), async (end) => {
      const [a, b] = await Promise.all([end.ask({ question: name }, never), end.ask({ question: colour }, never)])
      return toResultAnswer({ a: a.question ?? {}, b: b.question ?? {} })
    })
    const state = await parkedState(step)
    const second = await parkedCalls.resume(state, { question: { n: 1 } }, waitingAs())
    expect(resultOf(second)).toEqual({ question: colour })
    const last = await parkedCalls.resume(
      await parkedState(Promise.resolve(second)),
      { question: { n: 2 } },
      waitingAs(),
    )
    expect(resultOf(last)).toEqual({ a: { n: 1 }, b: { n: 2 } })
  })

  it('tells how it ended to whoever comes back after the question was no longer needed', async () => {
    const { parkedCalls } = createParts()
    const taken = new AbortController()
    const step = parkedCalls.begin(waitingAs(), async (end) => {
      await end.ask({ question: name }, taken.signal).catch(() => {})
      return toResultAnswer({ done: true })
    })
    const state = await parkedState(step)
    taken.abort()
    expect(resultOf(await parkedCalls.resume(state, yes, waitingAs()))).toEqual({ done: true })
  })

  it('tells its progress to the request that waits now', async () => {
    const { parkedCalls } = createParts()
    const [first, second] = [waitingAs(), waitingAs()]
    const step = parkedCalls.begin(first, async (end) => {
      end.tell('before', {})
      await end.ask({ question: name }, end.signal)
      end.tell('after', {})
      return toResultAnswer({})
    })
    await parkedCalls.resume(await parkedState(step), yes, second)
    expect([first.told, second.told]).toEqual([['before'], ['after']])
  })

  it('gives way to the ninth of the same caller, and only of the same', async () => {
    const { parkedCalls } = createParts()
    const mine = Array.from({ length: 8 }, () => beginAsking(parkedCalls))
    const other = beginAsking(parkedCalls, { question: name }, waitingAs({ who: () => 'agent:b /mcp' }))
    await Promise.all([...mine, other].map(({ step }) => parkedState(step)))
    expect(mine.flatMap(({ heard }) => heard)).toEqual([])
    await parkedState(beginAsking(parkedCalls).step)
    await expect.poll(() => mine[0]?.heard).toMatchObject([{ code: 'question-refused' }])
    expect([...mine.slice(1), other].flatMap(({ heard }) => heard)).toEqual([])
  })

  it('is refused its question while a thousand others are parked, and can ask again later', async () => {
    const { parkedCalls } = createParts()
    const others = Array.from({ length: 1024 }, (_, index) =>
      beginAsking(parkedCalls, { question: name }, waitingAs({ who: () => `agent:${index} /mcp` })),
    )
    const states = await Promise.all(others.map(({ step }) => parkedState(step)))
    const refused: unknown[] = []
    const gate = Promise.withResolvers<void>()
    const step = parkedCalls.begin(waitingAs(), async (end) => {
      await end.ask({ question: name }, end.signal).catch((error: unknown) => refused.push(error))
      await gate.promise
      return asking(end, { question: colour }, [])
    })
    await expect.poll(() => refused).toMatchObject([{ code: 'question-refused' }])
    await parkedCalls.resume(states[0] ?? '', yes, waitingAs({ who: () => 'agent:0 /mcp' }))
    gate.resolve()
    const state = await parkedState(step)
    expect(resultOf(await parkedCalls.resume(state, yes, waitingAs()))).toEqual(yes)
  })

  it('is refused a question for which there is no memory, until others have been answered', async () => {
    const { parkedCalls } = createParts()
    const large: Question = { method: 'elicitation/create', params: { message: 'x'.repeat(20 * 1024 * 1024) } }
    const as = (number: number) => waitingAs({ who: () => `agent:${number} /mcp` })
    const first = await parkedState(beginAsking(parkedCalls, { question: large }, as(1)).step)
    for (const number of [2, 3]) await parkedState(beginAsking(parkedCalls, { question: large }, as(number)).step)
    const refused = beginAsking(parkedCalls, { question: large }, as(4))
    await expect(refused.step).rejects.toMatchObject({ code: 'question-refused' })
    await parkedCalls.resume(first, yes, as(1))
    await parkedState(beginAsking(parkedCalls, { question: large }, as(5)).step)
  })

  it('that has begun is lost with its state; one that has not begins anew', async () => {
    const { parkedCalls } = createParts()
    const begun = await parkedState(beginAsking(parkedCalls).step)
    const first = await parkedState(
      parkedCalls.begin(waitingAs(), (end) => answerOf(end.askFirst({ question: name }, never))),
    )
    for (const state of [begun, first]) {
      expect(parkedCalls.owns(state)).toBe(true)
      expect(parkedCalls.isLost(state)).toBe(false)
      await expect(parkedCalls.resume(state, yes, waitingAs({ who: () => 'agent:b /mcp' }))).rejects.toThrow()
      expect(resultOf(await parkedCalls.resume(state, yes, waitingAs()))).toEqual(yes)
    }
    expect([parkedCalls.isLost(begun), parkedCalls.isLost(first)]).toEqual([false, true])
    const elsewhere = createParts().parkedCalls
    expect([elsewhere.isLost(begun), elsewhere.isLost(first)]).toEqual([false, true])
  })

  it('ends when the gateway does', async () => {
    const { parkedCalls } = createParts()
    const { step, heard } = beginAsking(parkedCalls)
    await parkedState(step)
    parkedCalls.close()
    await expect.poll(() => heard).toMatchObject([{ code: 'question-refused' }])
  })
})

describe('a call of the stateless era', () => {
  it('is taken back when its caller hangs up, before its question and after it was answered', async () => {
    const { parkedCalls } = createParts()
    const waiting = waitingAs()
    const aborted: string[] = []
    const step = parkedCalls.begin(waiting, async (end) => {
      end.signal.addEventListener('abort', () => aborted.push('first'))
      return new Promise(() => {})
    })
    waiting.hangUp()
    expect(aborted).toEqual(['first'])
    step.catch(() => {})
    const later = waitingAs()
    const second = parkedCalls.begin(waitingAs(), async (end) => {
      end.signal.addEventListener('abort', () => aborted.push('second'))
      await end.ask({ question: name }, end.signal)
      return new Promise(() => {})
    })
    parkedCalls.resume(await parkedState(second), yes, later).catch(() => {})
    later.hangUp()
    expect(aborted).toEqual(['first', 'second'])
  })

  it('asks nobody whose caller has hung up already', async () => {
    const { parkedCalls } = createParts()
    const gate = Promise.withResolvers<void>()
    const waiting = waitingAs()
    const heard: unknown[] = []
    const step = parkedCalls.begin(waiting, async (end) => {
      await gate.promise
      return asking(end, { question: name }, heard)
    })
    waiting.hangUp()
    gate.resolve()
    await expect(step).rejects.toMatchObject({ code: 'question-refused' })
    expect(heard).toMatchObject([{ code: 'question-refused' }])
  })
})

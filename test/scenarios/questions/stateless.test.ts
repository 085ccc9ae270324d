import { describe, expect, it } from 'vitest'
import { startHttpFixture } from '../../fixtures/fixtures.ts'
import { type Fields, toFields } from '../../fixtures/lib/json-rpc.ts'
import { startTestGateway } from '../../support/gateway.ts'
import { createMovableClock } from '../mcp/clock.ts'
import { allowAll, openSession, type Reply, recordedCalls, textOf } from '../mcp/raw.ts'
import { accept, endedCalls, everything, heardBy, liveRequest, request, startAsking } from './support.ts'

const once = { steps: [{ ask: { message: 'Who?' } }] }
const isCancelled = ({ method }: { method?: unknown }) => method === 'notifications/cancelled'
const isCall = ({ method }: { method?: unknown }) => method === 'tools/call'

function stateOf({ result }: Reply): string {
  expect(result.resultType).toBe('input_required')
  return String(result.requestState)
}

const retry = (requestState: string, inputResponses?: Fields) => ({ more: { requestState, inputResponses } })
const ada = { question: accept({ name: 'Ada' }) }

describe('a question of a server with sessions to a stateless caller', () => {
  it('is an unfinished answer, and the retry takes up the same call', async () => {
    await using scene = await startAsking()
    const steps = [{ ask: { message: 'First?' } }, { ask: { message: 'Second?' } }]
    const first = await request(scene.gateway, { steps })
    expect(first.result.inputRequests).toEqual({
      question: { method: 'elicitation/create', params: { message: 'First?' } },
    })
    const second = await request(scene.gateway, { steps }, retry(stateOf(first), ada))
    expect(second.result.inputRequests).toMatchObject({ question: { params: { message: 'Second?' } } })
    const bob = { question: { action: 'decline' }, unasked: accept({}) }
    const done = await request(scene.gateway, { steps }, retry(stateOf(second), bob))
    expect(done.result.resultType).toBe('complete')
    expect(heardBy(done.result)).toEqual([ada.question, { action: 'decline' }])
    expect((await scene.record()).filter(isCall).length).toBe(1)
    expect((await recordedCalls(scene.gateway)).map(({ state }) => state)).toEqual(['ok'])
  })

  it('is answered by nobody else, nowhere else, for nothing else and not twice', async () => {
    await using scene = await startAsking()
    const state = stateOf(await request(scene.gateway, once))
    const tries = [
      { given: once, options: { ...retry(state, ada), agent: 'stranger' } },
      { given: once, options: { ...retry(state, ada), path: '/mcp/s/asking', name: 'script' } },
      { given: { ...once, more: 1 }, options: retry(state, ada) },
      { given: once, options: retry(`${state.slice(0, -2)}AA`, ada) },
    ]
    for (const { given, options } of tries) {
      const reply = await request(scene.gateway, given, options)
      expect(reply.error).toMatchObject({ code: -32602 })
    }
    const done = await request(scene.gateway, once, retry(state, ada))
    expect(heardBy(done.result)).toEqual([ada.question])
    const again = await request(scene.gateway, once, retry(state, ada))
    expect(again.error).toMatchObject({ code: -32602 })
    expect((await scene.record()).filter(isCall).length).toBe(1)
  })

  it('is asked again when the retry brings no answer', async () => {
    await using scene = await startAsking()
    const first = stateOf(await request(scene.gateway, once))
    const second = stateOf(await request(scene.gateway, once, retry(first, {})))
    expect(second).not.toBe(first)
    expect(heardBy((await request(scene.gateway, once, retry(second, ada))).result)).toEqual([ada.question])
  })

  it('of a gateway that has been started again is refused', async () => {
    await using before = await startAsking()
    const state = stateOf(await request(before.gateway, once))
    await using after = await startAsking()
    expect((await request(after.gateway, once, retry(state, ada))).error).toMatchObject({ code: -32602 })
    expect((await after.record()).filter(isCall)).toEqual([])
  })

  it('is given up with its call when nobody comes back in ten minutes', async () => {
    const clock = createMovableClock()
    await using scene = await startAsking({ clock })
    const state = stateOf(await request(scene.gateway, once))
    clock.advance(500_000)
    expect((await recordedCalls(scene.gateway)).map((call) => call.state)).toEqual(['running'])
    clock.advance(101_000)
    await scene.reached(isCancelled)
    expect((await endedCalls(scene.gateway, 1)).map((call) => call.state)).toEqual(['cancelled'])
    expect((await request(scene.gateway, once, retry(state, ada))).error).toMatchObject({ code: -32602 })
  })

  it('does not run against the time of its call', async () => {
    const clock = createMovableClock()
    await using scene = await startAsking({ clock, server: { timeout: { call: 20_000, maximum: 30_000 } } })
    const state = stateOf(await request(scene.gateway, once))
    clock.advance(400_000)
    expect(heardBy((await request(scene.gateway, once, retry(state, ada))).result)).toEqual([ada.question])
  })

  it('gives way to the ninth that the same caller leaves open', async () => {
    await using scene = await startAsking()
    const given = (number: number) => ({ ...once, number })
    const states: string[] = []
    for (let number = 0; number < 9; number++) states.push(stateOf(await request(scene.gateway, given(number))))
    await scene.reached(isCancelled)
    const [first = '', second = ''] = states
    expect((await request(scene.gateway, given(0), retry(first, ada))).error).toMatchObject({ code: -32602 })
    expect(heardBy((await request(scene.gateway, given(1), retry(second, ada))).result)).toEqual([ada.question])
  })

  it('leaves no call under way when the gateway stops', async () => {
    await using scene = await startAsking()
    const ended: string[] = []
    scene.gateway.gateway.events.on('call-ended', ({ call }) => void ended.push(call.state))
    stateOf(await request(scene.gateway, once))
    stateOf(await request(scene.gateway, { ...once, other: true }))
    await scene.gateway.stop()
    expect(ended.length).toBe(2)
    expect(ended).not.toContain('ok')
  })

  it('ends with its call when the caller hangs up after it has answered', async () => {
    await using scene = await startAsking()
    const given = { steps: [{ ask: { message: 'Who?' } }, { progress: 1 }, { hold: true }] }
    const state = stateOf(await request(scene.gateway, given, { progressToken: 'first' }))
    const waiting = await liveRequest(scene.gateway, given, { ...retry(state, ada), progressToken: 'second' })
    const progress = await waiting.heard(({ method }) => method === 'notifications/progress')
    expect(toFields(progress.params).progressToken).toBe('second')
    waiting.hangUp()
    await scene.reached(isCancelled)
    expect((await endedCalls(scene.gateway, 1)).map((call) => call.state)).toEqual(['cancelled'])
  })

  it('that the server takes back leaves the call, and the answer to it goes nowhere', async () => {
    await using scene = await startAsking()
    const given = {
      steps: [
        { raise: { message: 'First?' }, id: 'mine' },
        { wait: 50 },
        { withdraw: 'mine' },
        { ask: { message: 'Delete everything?' }, id: 'second' },
      ],
    }
    const state = stateOf(await request(scene.gateway, given))
    await scene.reached(({ kind, id }) => kind === 'response' && id === 'mine')
    const second = await request(scene.gateway, given, retry(state, { question: accept({ ok: true }) }))
    expect(second.result.inputRequests).toMatchObject({ question: { params: { message: 'Delete everything?' } } })
    const no = { question: { action: 'decline' } }
    const done = await request(scene.gateway, given, retry(stateOf(second), no))
    expect(heardBy(done.result)).toContainEqual({ action: 'decline' })
    expect(heardBy(done.result)).not.toContainEqual(accept({ ok: true }))
  })
})

describe('a caller that did not declare what a server asks for', () => {
  const failing = { steps: [{ ask: { message: 'Who?' } }], isError: true }

  it('hears what is missing when a call fails over it, with a status of its own', async () => {
    await using scene = await startAsking()
    const reply = await request(scene.gateway, failing, { capabilities: { sampling: {} } })
    expect(reply.status).toBe(400)
    expect(reply.error).toMatchObject({ code: -32021, data: { requiredCapabilities: { elicitation: { form: {} } } } })
  })

  it('gets the result of a server that copes without an answer', async () => {
    await using scene = await startAsking()
    const reply = await request(scene.gateway, once, { capabilities: {} })
    expect([reply.status, heardBy(reply.result)]).toMatchObject([200, [{ error: { code: -32601 } }]])
  })

  it('is asked for a form where it declared elicitation and said no more', async () => {
    await using scene = await startAsking()
    stateOf(await request(scene.gateway, once, { capabilities: { elicitation: {} } }))
    const url = { steps: [{ ask: { mode: 'url', url: 'https://example.com', elicitationId: 'e' } }], isError: true }
    const reply = await request(scene.gateway, url, { capabilities: { elicitation: {} } })
    expect(reply.error).toMatchObject({ data: { requiredCapabilities: { elicitation: { url: {} } } } })
  })

  it('on REST hears from the tool that it cannot be asked', async () => {
    await using scene = await startAsking()
    const response = await scene.gateway.fetch('agent', '/api/tools/asking_script/call', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ arguments: once }),
    })
    expect(response.status).toBe(200)
    expect(await response.text()).toContain('The caller does not offer elicitation/create')
  })
})

describe('a server of the newer era', () => {
  const name = 'modern_test_input_required_result_elicitation'

  async function startModern() {
    const fixture = await startHttpFixture('conformance', ['--era', 'modern', '--http'])
    const servers = { modern: { transport: 'http' as const, url: fixture.url } }
    const gateway = await startTestGateway({ rules: allowAll, servers })
    await gateway.reach('modern', 'connected')
    const close = async () => {
      await gateway.close()
      await fixture.stop()
    }
    return { gateway, [Symbol.asyncDispose]: close }
  }

  it('refuses a stateless caller that did not declare enough, with what is missing', async () => {
    await using scene = await startModern()
    const reply = await request(scene.gateway, {}, { name, capabilities: {} })
    expect([reply.status, reply.error]).toMatchObject([400, { code: -32021, data: { requiredCapabilities: {} } }])
  })

  it('fails for a client with a session that did not, in words that a model reads', async () => {
    await using scene = await startModern()
    const session = await openSession(scene.gateway, { capabilities: {} })
    const { result } = await session.call(name)
    expect(result.isError).toBe(true)
    expect(textOf(result)).toMatch(/^capability-missing: .*elicitation/)
  })

  it('goes on with the answers of a stateless caller, in rounds of the gateway', async () => {
    await using scene = await startModern()
    const multi = { name: 'modern_test_input_required_result_multi_round' }
    const first = await request(scene.gateway, {}, multi)
    const one = { step1: accept({ name: 'Ada' }) }
    const second = await request(scene.gateway, {}, { ...multi, ...retry(stateOf(first), one) })
    const two = { step2: accept({ color: 'red' }) }
    const done = await request(scene.gateway, {}, { ...multi, ...retry(stateOf(second), two) })
    expect(textOf(done.result)).toBe('Ada likes red')
    expect((await endedCalls(scene.gateway, 1)).map((call) => call.state)).toEqual(['ok'])
  })

  it('answers everything it declared and nothing it did not', async () => {
    await using scene = await startModern()
    const tool = { name: 'modern_test_input_required_result_capabilities' }
    const asked = await request(scene.gateway, {}, { ...tool, capabilities: { roots: {} } })
    expect(Object.keys(toFields(asked.result.inputRequests))).toEqual(['client_roots'])
    const all = await request(scene.gateway, {}, { ...tool, capabilities: everything })
    expect(Object.keys(toFields(all.result.inputRequests)).length).toBe(3)
  })
})

import { describe, expect, it } from 'vitest'
import { toFields } from '../../fixtures/lib/json-rpc.ts'
import { poll } from '../../support/gateway.ts'
import { createMovableClock } from '../mcp/clock.ts'
import { headersOf, openSession, openStream, send, textOf } from '../mcp/raw.ts'
import { accept, endedCalls, heardBy, openClient, startAsking } from './support.ts'

const question = { ask: { message: 'Who?' } }
const isCancelled = ({ method }: { method?: unknown }) => method === 'notifications/cancelled'

describe('a question to a client with a session', () => {
  it('of every kind comes as the server put it, and its answer goes back as it was given', async () => {
    await using scene = await startAsking()
    const client = await openClient(scene.gateway)
    const sampling = { messages: [], maxTokens: 5, __proto__: null, odd: { constructor: 1 } }
    const talk = await client.script([
      { ask: { mode: 'url', message: 'Go', url: 'https://example.com/x', elicitationId: 'e-1' } },
      { ask: sampling, method: 'sampling/createMessage', id: 1 },
      { ask: {}, method: 'roots/list', id: '1' },
    ])
    const url = await talk.asked('Go')
    expect(url.params).toMatchObject({ mode: 'url', elicitationId: 'e-1' })
    await client.answer(url, { action: 'accept' })
    const sample = await talk.heard(({ method }) => method === 'sampling/createMessage')
    expect(sample.params).toEqual({ messages: [], maxTokens: 5, odd: { constructor: 1 } })
    const said = { role: 'assistant', content: { type: 'text', text: 'hi' }, model: 'm' }
    await client.answer(sample, said)
    const roots = await talk.heard(({ method }) => method === 'roots/list')
    await client.post({ id: roots.id, error: { code: -1, message: 'Not today' } })
    expect(heardBy(await talk.result())).toEqual([
      { action: 'accept' },
      said,
      { error: { code: -1, message: 'Not today' } },
    ])
  })

  it('that leads elsewhere is told to be done there to whoever was sent, also when the call is over', async () => {
    await using scene = await startAsking()
    const [client, other] = [await openClient(scene.gateway, 'ann'), await openClient(scene.gateway, 'bob')]
    const stream = await openStream(scene.gateway, client.id, 'ann')
    const foreign = await openStream(scene.gateway, other.id, 'bob')
    const url = { mode: 'url', message: 'Go', url: 'https://example.com/x', elicitationId: 'e-1' }
    const talk = await client.script([{ ask: url }])
    await client.answer(await talk.asked('Go'), { action: 'accept' })
    await talk.result()
    const later = await other.script([{ complete: 'e-1' }])
    await later.result()
    await poll(() => stream.text().includes('"elicitationId":"e-1"') || undefined)
    expect(foreign.text()).not.toContain('e-1')
    expect(JSON.stringify(later.messages())).not.toContain('e-1')
    stream.close()
    foreign.close()
  })

  it('is answered by that session alone, once, and by its own id', async () => {
    await using scene = await startAsking()
    const client = await openClient(scene.gateway, 'ann')
    const sibling = await openClient(scene.gateway, 'ann')
    const stranger = await openClient(scene.gateway, 'bob')
    const talk = await client.script([question, question])
    const first = await talk.asked()
    await sibling.answer(first, accept({ by: 'sibling' }))
    await stranger.answer(first, accept({ by: 'stranger' }))
    const stolen = await headersOf(scene.gateway, 'bob', { 'mcp-session-id': client.id })
    const body = JSON.stringify({ jsonrpc: '2.0', id: first.id, result: accept({ by: 'thief' }) })
    expect((await send(`${scene.gateway.url}/mcp`, { headers: stolen, body })).status).toBe(404)
    const deep = JSON.parse(`${'['.repeat(600)}${']'.repeat(600)}`)
    for (const id of ['sallyport-99', 1, 7, '__proto__', '', null, {}, deep])
      expect((await client.post({ id, result: accept({ by: 'guess' }) })).status).toBe(202)
    await client.answer(first, accept({ by: 'ann' }))
    await client.answer(first, accept({ by: 'ann, again' }))
    const second = await talk.heard(({ id, method }) => method === 'elicitation/create' && id !== first.id)
    await client.answer(second, accept({ by: 'ann, second' }))
    expect(heardBy(await talk.result())).toEqual([accept({ by: 'ann' }), accept({ by: 'ann, second' })])
  })

  it('that gets no usable answer is refused, and the server hears why', async () => {
    await using scene = await startAsking()
    const client = await openClient(scene.gateway)
    const talk = await client.script([question, question])
    const first = await talk.asked()
    await client.post(`{"jsonrpc":"2.0","id":${JSON.stringify(first.id)},"result":"yes"}`)
    const second = await talk.heard(({ id, method }) => method === 'elicitation/create' && id !== first.id)
    const deep = `${'['.repeat(600)}${']'.repeat(600)}`
    const bad = await client.post(`{"jsonrpc":"2.0","id":${JSON.stringify(second.id)},"result":{"a":${deep}}}`)
    expect(bad.status).toBe(202)
    expect(heardBy(await talk.result())).toMatchObject([{ error: { code: -32603 } }, { error: { code: -32603 } }])
  })

  it('is taken back when the client cancels its call, and the server hears of the cancellation', async () => {
    await using scene = await startAsking()
    const client = await openClient(scene.gateway)
    const talk = await client.script([question], { id: 42 })
    const asked = await talk.asked()
    await client.post({ method: 'notifications/cancelled', params: { requestId: 42 } })
    const taken = await talk.heard(isCancelled)
    expect(taken.params).toMatchObject({ requestId: asked.id })
    const [call] = await scene.reached(({ method }) => method === 'tools/call')
    const [cancelled] = await scene.reached(isCancelled)
    expect(toFields(cancelled?.params).requestId).toBe(call?.id)
    expect((await endedCalls(scene.gateway, 1)).map(({ state }) => state)).toEqual(['cancelled'])
    expect((await client.answer(asked, accept({}))).status).toBe(202)
  })

  it.each([
    ['says goodbye', (client: { end(): Promise<unknown> }) => client.end()],
    ['hangs up', (_client: unknown, talk: { hangUp(): void }) => talk.hangUp()],
  ])('ends with its call when the client %s, and the server hears of the cancellation', async (_how, leave) => {
    await using scene = await startAsking()
    const client = await openClient(scene.gateway)
    const talk = await client.script([question])
    await talk.asked()
    await leave(client, talk)
    await scene.reached(isCancelled)
    expect((await endedCalls(scene.gateway, 1)).map(({ state }) => state)).toEqual(['cancelled'])
  })

  it('is not what keeps a call alive: a client that hangs up before it is asked ends no call', async () => {
    await using scene = await startAsking()
    const client = await openClient(scene.gateway)
    const talk = await client.script([{ progress: 1 }, { wait: 300 }], { progressToken: 'p' })
    await talk.heard(({ method }) => method === 'notifications/progress')
    talk.hangUp()
    expect((await endedCalls(scene.gateway, 1)).map(({ state }) => state)).toEqual(['ok'])
  })

  it('reaches nobody who has hung up: the call ends', async () => {
    await using scene = await startAsking()
    const client = await openClient(scene.gateway)
    const talk = await client.script([{ progress: 1 }, { wait: 300 }, question], { progressToken: 'p' })
    await talk.heard(({ method }) => method === 'notifications/progress')
    talk.hangUp()
    const [answer] = await scene.reached(({ kind }) => kind === 'response')
    expect(answer?.error).toMatchObject({ code: -32603 })
    expect((await endedCalls(scene.gateway, 1)).length).toBe(1)
  })

  it('is taken back when the server takes it back, and the call goes on', async () => {
    await using scene = await startAsking()
    const client = await openClient(scene.gateway)
    const talk = await client.script([
      { raise: { message: 'First?' }, id: 'mine' },
      { wait: 50 },
      { withdraw: 'mine' },
      { ask: { message: 'Second?' } },
    ])
    const first = await talk.asked('First?')
    expect((await talk.heard(isCancelled)).params).toMatchObject({ requestId: first.id })
    const second = await talk.asked('Second?')
    await client.answer(first, accept({ to: 'first' }))
    await client.answer(second, accept({ to: 'second' }))
    expect(heardBy(await talk.result())).toContainEqual(accept({ to: 'second' }))
    expect(heardBy(await talk.result())).not.toContainEqual(accept({ to: 'first' }))
  })

  it('is taken back when the server answers the call without waiting for it', async () => {
    await using scene = await startAsking()
    const client = await openClient(scene.gateway)
    const talk = await client.script([{ raise: { message: 'Never mind?' } }])
    const asked = await talk.asked()
    expect((await talk.heard(isCancelled)).params).toMatchObject({ requestId: asked.id })
    expect(heardBy(await talk.result())).toEqual([])
    expect((await endedCalls(scene.gateway, 1)).map(({ state }) => state)).toEqual(['ok'])
  })

  it('stops the clock of its call while somebody thinks, and no longer', async () => {
    const clock = createMovableClock()
    await using scene = await startAsking({ clock, server: { timeout: { call: 20_000, maximum: 30_000 } } })
    const client = await openClient(scene.gateway)
    const talk = await client.script([question, { hold: true }])
    const asked = await talk.asked()
    clock.advance(500_000)
    await client.answer(asked, accept({}))
    await scene.reached(({ kind }) => kind === 'response')
    expect(talk.messages().filter(({ method }) => method === undefined)).toEqual([])
    clock.advance(21_000)
    expect(textOf(await talk.result())).toContain('No answer within 20000 ms')
    await scene.reached(isCancelled)
    expect((await endedCalls(scene.gateway, 1)).map(({ state }) => state)).toEqual(['unknown'])
  })

  it('that nobody answers for ten minutes is refused', async () => {
    const clock = createMovableClock()
    await using scene = await startAsking({ clock })
    const client = await openClient(scene.gateway)
    const talk = await client.script([question])
    await talk.asked()
    clock.advance(601_000)
    expect(heardBy(await talk.result())).toMatchObject([{ error: { message: 'Nobody answered in time' } }])
  })

  it('is not put to a client that did not declare it, nor to one that takes no stream', async () => {
    await using scene = await startAsking()
    const plain = await openClient(scene.gateway, 'agent', { elicitation: {} })
    const url = { ask: { mode: 'url', message: 'Go', url: 'https://example.com', elicitationId: 'e' } }
    const talk = await plain.script([url, question])
    await plain.answer(await talk.asked('Who?'), accept({}))
    expect(heardBy(await talk.result())).toMatchObject([{ error: { code: -32601 } }, accept({})])

    const session = await openSession(scene.gateway, { capabilities: { elicitation: {} } })
    const call = { id: 9, method: 'tools/call', params: { name: 'asking_script', arguments: { steps: [question] } } }
    const reply = await session.post(call, { accept: 'application/json' })
    expect(heardBy(reply.result)).toMatchObject([{ error: { code: -32603 } }])
  })

  it('is one of at most 64, whatever a server floods its client with', async () => {
    await using scene = await startAsking()
    const client = await openClient(scene.gateway)
    const flood = Array.from({ length: 200 }, (_, index) => ({ raise: { message: `${index}` } }))
    const talk = await client.script([...flood, { wait: 500 }, { ask: { message: 'last' } }])
    expect(heardBy(await talk.result())).toContainEqual({
      error: { code: -32603, message: 'Too many questions are open' },
    })
    const asked = talk.messages().filter(({ method }) => method === 'elicitation/create')
    expect(asked.length).toBe(64)
  })
})

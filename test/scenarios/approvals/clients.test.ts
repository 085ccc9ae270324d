import { beforeAll, describe, expect, it } from 'vitest'
import { poll } from '../../support/gateway.ts'
import { textOf } from '../mcp/raw.ts'
import { type AtClient, type Kind, kinds, type Scene, startScene } from './clients-support.ts'

const tool = 'rec_write_thing'

describe.each(Object.entries(kinds))('%s', (_name, kind) => {
  let scene: Scene
  beforeAll(async () => {
    scene = await startScene()
    return () => scene[Symbol.asyncDispose]()
  })

  /** The approval, when the client has shown it or there is nothing that it could show. */
  async function held(given: { path: string }, client: { asked: readonly unknown[] }) {
    const approval = await scene.asked(given)
    if (kind.elicitation?.url) await poll(() => client.asked.length > 0 || undefined)
    return approval
  }

  it('waits with a writing call until a person approves it; it runs once, and the client gets the result', async () => {
    const given = { path: '/approved' }
    const client = await scene.connect(kind)
    const call = client.call(tool, given)
    const approval = await held(given, client)
    expect(approval).toMatchObject({ tool, principal: 'agent:agent', state: 'waiting' })
    expect(await scene.received()).toEqual([])
    await scene.answer(approval.id, 'approve')
    const result = await call
    expect(result.isError).toBeUndefined()
    expect(textOf(result)).toContain('/approved')
    expect(await scene.received()).toEqual([given])
    expect(await scene.stateOf(approval.id)).toBe('used')
    expect(await scene.gateway.gateway.calls.find(approval.call)).toMatchObject({ state: 'ok' })
  })

  it('hears that a person denied it, with the reason, and nothing is sent', async () => {
    const given = { path: '/denied' }
    const client = await scene.connect(kind)
    const call = client.call(tool, given)
    const { id } = await held(given, client)
    await scene.answer(id, 'deny', 'not on a Friday')
    const result = await call
    expect(result.isError).toBe(true)
    expect(textOf(result)).toContain('approval-denied')
    expect(textOf(result)).toContain('not on a Friday')
    expect(await scene.received()).not.toContainEqual(given)
  })

  it('may leave: an approval then runs nothing, and the same call made again joins it and runs, once', async () => {
    const given = { path: '/left' }
    const parks = kind.sdk === 'v2' && kind.elicitation?.url !== undefined
    const leaving = new AbortController()
    const client = await scene.connect(kind, parks ? { atClient: secondTime(leaving.signal) } : {})
    const left = client.call(tool, given, { signal: leaving.signal })
    left.catch(() => {})
    const approval = await held(given, client)
    leaving.abort()
    await expect(left).rejects.toThrow()
    if (!parks) await scene.quiet()
    await scene.answer(approval.id, 'approve')
    expect(await scene.stateOf(approval.id)).toBe('approved')
    expect(await scene.received()).not.toContainEqual(given)

    expect(textOf(await client.call(tool, given))).toContain('/left')
    expect(await scene.stateOf(approval.id)).toBe('used')
    const anew = client.call(tool, given)
    const second = await scene.asked(given)
    expect(second.id).not.toBe(approval.id)
    await scene.answer(second.id, 'deny')
    expect(textOf(await anew)).toContain('approval-denied')
    expect((await scene.received()).filter((each) => each.path === given.path)).toEqual([given])
  })
})

it('keeps what an approved call got for whoever left while it ran, until it was delivered once', async () => {
  await using scene = await startScene({ rules: [{ tools: 'rec_echo', action: 'ask' }] })
  const leaveAndReturn = async ([text, kind]: [string, Kind]) => {
    const given = { text, delayMs: 2000 }
    const client = await scene.connect(kind)
    const leaving = new AbortController()
    const left = client.call('rec_echo', given, { signal: leaving.signal })
    left.catch(() => {})
    const { id } = await scene.asked(given)
    await scene.answer(id, 'approve')
    await poll(async () => (await scene.received()).find((each) => each.text === text))
    leaving.abort()
    await expect(left).rejects.toThrow()
    expect(textOf(await client.call('rec_echo', given))).toBe(text)
    expect(await scene.stateOf(id)).toBe('used')
  }
  await Promise.all(Object.entries(kinds).map(leaveAndReturn))
  const texts = (await scene.received()).map((each) => each.text)
  expect(texts.toSorted()).toEqual(Object.keys(kinds).toSorted())
})

it('tells every kind of client that nobody answered in time, and sends nothing', async () => {
  await using scene = await startScene({ limits: { approvalExpiry: 1000 } })
  const results = Object.entries(kinds).map(async ([path, kind]) => {
    const client = await scene.connect(kind)
    return client.call(tool, { path })
  })
  for (const result of await Promise.all(results)) {
    expect(result.isError).toBe(true)
    expect(textOf(result)).toContain('approval-expired')
  }
  expect(await scene.received()).toEqual([])
})

/** Somebody who leaves instead of answering, and answers when asked again. */
function secondTime(leaving: AbortSignal): AtClient {
  const left = Promise.withResolvers<never>()
  leaving.addEventListener('abort', () => left.reject(new Error('The dialogue was closed')))
  return () => (leaving.aborted ? { action: 'accept' } : left.promise)
}

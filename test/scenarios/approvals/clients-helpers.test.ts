import { expect, it } from 'vitest'
import { type Fields, toFields } from '../../fixtures/lib/json-rpc.ts'
import { textOf } from '../mcp/raw.ts'
import { type AnyClient, type Kind, type Scene, startScene } from './clients-support.ts'

const tool = 'rec_write_thing'
const status = 'sallyport_approval_status'
const wait = 'sallyport_wait_for_approval'
const plain: Kind = { sdk: 'v2', over: 'http' }

const shown = (result: Fields) => toFields(result.structuredContent)

async function askFor(scene: Scene, client: AnyClient, path: string): Promise<string> {
  expect(textOf(await client.call(tool, { path }))).toContain('approval-waiting')
  return (await scene.asked({ path })).id
}

it('tells an agent how its approval stands and what to do next, at each of its states', async () => {
  await using scene = await startScene({ limits: { hold: 0 } })
  const client = await scene.connect(plain)
  expect(await client.tools()).toEqual(expect.arrayContaining([status, wait]))
  const id = await askFor(scene, client, '/a')
  const waiting = await client.call(status, { id })
  expect(waiting.isError).toBeUndefined()
  expect(shown(waiting)).toMatchObject({ id, state: 'waiting', tool, expiresAt: expect.stringMatching(/^20/) })
  expect(textOf(waiting)).toContain(wait)
  await scene.answer(id, 'approve')
  const approved = await client.call(status, { id })
  expect(shown(approved)).toMatchObject({ state: 'approved' })
  expect(textOf(approved)).toContain('Repeat the same call')
  await client.call(tool, { path: '/a' })
  expect(shown(await client.call(status, { id }))).toMatchObject({ state: 'used' })

  const second = await askFor(scene, client, '/b')
  await scene.answer(second, 'deny', 'not now')
  const denied = await client.call(status, { id: second })
  expect(shown(denied)).toMatchObject({ state: 'denied', reason: 'not now' })
  expect(textOf(denied)).toContain('not now')
})

it('waits for the answer, as long as it is told to, and runs nothing itself', async () => {
  await using scene = await startScene({ limits: { hold: 0 } })
  const client = await scene.connect(plain)
  const id = await askFor(scene, client, '/a')
  expect(shown(await client.call(wait, { id, seconds: 0 }))).toMatchObject({ state: 'waiting' })
  const waiting = client.call(wait, { id, seconds: 60 })
  await scene.answer(id, 'approve')
  expect(shown(await waiting)).toMatchObject({ state: 'approved' })
  expect(await scene.received()).toEqual([])
  for (const seconds of [61, -1, 'long'])
    expect(textOf(await client.call(wait, { id, seconds }))).toContain('arguments-invalid')
})

it('ends with its caller, and when the gateway stops', async () => {
  await using scene = await startScene({ limits: { hold: 0 } })
  const client = await scene.connect(plain)
  const id = await askFor(scene, client, '/a')
  const leaving = new AbortController()
  const left = client.call(wait, { id, seconds: 60 }, { signal: leaving.signal })
  left.catch(() => {})
  leaving.abort()
  await expect(left).rejects.toThrow()
  await scene.quiet()
  const waiting = client.call(wait, { id, seconds: 60 }).then(shown, () => ({ state: 'gone' }))
  await scene.gateway.stop()
  expect(['waiting', 'gone']).toContain(toFields(await waiting).state)
})

it('knows nothing of the approvals of others, and lets nobody join them', async () => {
  await using scene = await startScene({ limits: { hold: 0 } })
  const [ann, bob] = [await scene.connect(plain, { agent: 'ann' }), await scene.connect(plain, { agent: 'bob' })]
  const id = await askFor(scene, ann, '/a')
  for (const helper of [status, wait]) {
    const stolen = await bob.call(helper, { id })
    const invented = await bob.call(helper, { id: 'approval_0' })
    for (const result of [stolen, invented]) expect(textOf(result)).toContain('approval-not-found')
    expect(textOf(stolen)?.replace(id, '')).toBe(textOf(invented)?.replace('approval_0', ''))
  }
  const text = String(textOf(await bob.call(tool, { path: '/a' })))
  expect(text).toContain('approval-waiting')
  expect(text).not.toContain(id)
  await scene.answer(id, 'approve')
  expect(textOf(await bob.call(tool, { path: '/a' }))).toContain('approval-waiting')
  expect(await scene.received()).toEqual([])
  await ann.call(tool, { path: '/a' })
  expect(await scene.received()).toEqual([{ path: '/a' }])
})

it('is not asked about by a rule that asks about everything, and is denied by one that denies', async () => {
  const asking = { action: 'ask' as const }
  const denying = { tools: 'sallyport_*', principal: 'agent:bob', action: 'deny' as const }
  await using scene = await startScene({ limits: { hold: 0 }, rules: [asking, denying] })
  const [ann, bob] = [await scene.connect(plain, { agent: 'ann' }), await scene.connect(plain, { agent: 'bob' })]
  const id = await askFor(scene, ann, '/a')
  expect(shown(await ann.call(status, { id }))).toMatchObject({ state: 'waiting' })
  expect(textOf(await bob.call(status, { id }))).toContain('call-denied')
})

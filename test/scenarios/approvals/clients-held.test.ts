import { describe, expect, it } from 'vitest'
import { adminToken } from '../../../src/identity/identity.ts'
import { stdioFixture } from '../../fixtures/fixtures.ts'
import { type Fields, toFields } from '../../fixtures/lib/json-rpc.ts'
import { poll, startTestGateway } from '../../support/gateway.ts'
import { ask, headersOf, open, openSession, textOf } from '../mcp/raw.ts'
import { type Kind, kinds, startScene } from './clients-support.ts'

const tool = 'rec_write_thing'
const given = { path: '/a' }
const plain: readonly Kind[] = [
  { sdk: 'v1', over: 'http' },
  { sdk: 'v2', over: 'http' },
]

describe('a client that was held long enough', () => {
  it.each(plain)('is told what waits, where it is answered and how to go on ($sdk)', async (kind) => {
    await using scene = await startScene({ limits: { hold: 0 } })
    const client = await scene.connect(kind)
    const result = await client.call(tool, given)
    const { id, call } = await scene.asked(given)
    const url = `${scene.gateway.url}/approvals/${id}`
    expect(result.isError).toBe(true)
    expect(result._meta).toMatchObject({ 'sallyport/error': { code: 'approval-waiting', call, approval: id, url } })
    const text = String(textOf(result))
    expect(text).toContain(`approval-waiting: ${tool} is waiting for approval ${id}; repeat the same call`)
    for (const part of [url, 'sallyport_wait_for_approval', 'sallyport_approval_status']) expect(text).toContain(part)

    expect(textOf(await client.call(tool, given))).toContain(id)
    await scene.answer(id, 'approve')
    expect(textOf(await client.call(tool, given))).toContain('/a')
    expect(await scene.received()).toEqual([given])
  })

  it('is not shown tools that its address does not have', async () => {
    await using scene = await startScene({ limits: { hold: 0 } })
    const client = await scene.connect({ sdk: 'v1', over: 'http' }, { path: '/mcp/s/rec' })
    const text = String(textOf(await client.call('write_thing', given)))
    expect(text).toContain('approval-waiting')
    expect(text).not.toContain('sallyport_')
  })

  it('hears it as an error where the request is for something else than a tool', async () => {
    const servers = { docs: stdioFixture('conformance', ['--era', 'legacy']) }
    await using gateway = await startTestGateway({ servers, rules: [{ action: 'ask' }], limits: { hold: 0 } })
    await gateway.reach('docs', 'connected')
    const modern = await ask(gateway, 'resources/read', { uri: 'test://static-text' }, { headers: uriHeader })
    const session = await openSession(gateway, { agent: 'other' })
    const legacy = await session.request('resources/read', { uri: 'test://static-text' })
    for (const { error } of [modern, legacy]) {
      const { code, approval, url } = toFields(error.data)
      expect(code).toBe('approval-waiting')
      expect(url).toBe(`${gateway.url}/approvals/${approval}`)
    }
  })
})

it.each(plain)('holds a call that hears of progress until it is answered, and tells where ($sdk)', async (kind) => {
  await using scene = await startScene({ limits: { hold: 0 } })
  const client = await scene.connect(kind)
  const heard: Fields[] = []
  const call = client.call(tool, given, { onprogress: (progress) => void heard.push(progress) })
  const { id } = await scene.asked(given)
  const { message, progress } = await poll(() => heard[0])
  expect(message).toContain(`waiting for approval ${id} at ${scene.gateway.url}/approvals/${id}`)
  expect(progress).toBeLessThan(1)
  await scene.answer(id, 'approve')
  expect(textOf(await call)).toContain('/a')
})

it('leaves the approval behind when a session’s client hangs up without a word', async () => {
  await using scene = await startScene()
  const session = await openSession(scene.gateway)
  const headers = await headersOf(scene.gateway, 'agent', { 'mcp-session-id': session.id })
  const request = open(`${scene.gateway.url}/mcp`, { headers })
  request.on('error', () => {})
  request.end(JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name: tool, arguments: given } }))
  const { id } = await scene.asked(given)
  request.destroy()
  await scene.quiet()
  await scene.answer(id, 'approve')
  expect(await scene.received()).toEqual([])
  expect(textOf((await session.call(tool, given)).result)).toContain('/a')
  expect(await scene.received()).toEqual([given])
})

it.each(plain)('lets go of a call whose token is revoked, and an approval then runs nothing ($sdk)', async (kind) => {
  await using scene = await startScene()
  const { tokens } = scene.gateway.gateway
  const client = await scene.connect(kind, { agent: 'fired' })
  const call = client.call(tool, given)
  call.catch(() => {})
  const { id } = await scene.asked(given)
  const token = tokens.list(adminToken).find(({ agent }) => agent === 'fired')
  await tokens.revoke(adminToken, token?.id ?? '')
  await expect(call).rejects.toThrow('revoked')
  await scene.quiet()
  await scene.answer(id, 'approve')
  expect(await scene.received()).toEqual([])
})

it('lets a gateway stop while calls wait: each is told that it waits, and nothing was sent', async () => {
  await using scene = await startScene()
  const openRequests = Object.entries(kinds).filter(([, { sdk, over, elicitation }]) => {
    const comesBack = sdk === 'v2' && elicitation?.url !== undefined
    return over === 'http' && !comesBack
  })
  const calls: Promise<unknown>[] = []
  for (const [path, kind] of openRequests) {
    const client = await scene.connect(kind)
    calls.push(client.call(tool, { path }).then(textOf))
    await scene.asked({ path })
  }
  await scene.gateway.stop()
  for (const text of await Promise.all(calls)) expect(text).toContain('approval-waiting')
  expect(await scene.received()).toEqual([])
})

const uriHeader = { 'mcp-name': 'test://static-text' }

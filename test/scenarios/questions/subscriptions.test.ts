import { describe, expect, it } from 'vitest'
import { startHttpFixture } from '../../fixtures/fixtures.ts'
import { type Fields, toFields } from '../../fixtures/lib/json-rpc.ts'
import { poll, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { allowAll, eventsIn, modernRequest, openSession, openStream, recordedCalls, type Stream } from '../mcp/raw.ts'
import { live, openClient, startAsking } from './support.ts'

const isAbout = (method: string) => (message: Fields) => message.method === method
const follows = isAbout('resources/subscribe')
const unfollows = isAbout('resources/unsubscribe')

function updatedIn(stream: Stream): unknown[] {
  const messages = eventsIn(stream.text()).map((text): Fields => toFields(JSON.parse(text)))
  return messages.filter(isAbout('notifications/resources/updated')).map(({ params }) => toFields(params).uri)
}

async function openListener(gateway: TestGateway, agent: string) {
  const client = await openClient(gateway, agent)
  const stream = await openStream(gateway, client.id, agent)
  const change = async (uri: string) => (await client.script([{ update: uri }], { id: Math.random() })).result()
  return { client, stream, change, updated: () => updatedIn(stream) }
}

describe('sessions that follow a resource', () => {
  it('share one subscription at the server, which ends with the last of them', async () => {
    await using scene = await startAsking()
    const [ann, bob, eve] = await Promise.all(['ann', 'bob', 'eve'].map((name) => openListener(scene.gateway, name)))
    if (!ann || !bob || !eve) throw new Error('No session')
    await ann.client.request('resources/subscribe', { uri: 'test://a' })
    await ann.client.request('resources/subscribe', { uri: 'test://a' })
    await bob.client.request('resources/subscribe', { uri: 'test://a' })
    expect((await scene.record()).filter(follows).length).toBe(1)
    await eve.change('test://a')
    await poll(() => (ann.updated().length > 0 && bob.updated().length > 0) || undefined)
    await bob.client.request('resources/unsubscribe', { uri: 'test://a' })
    await eve.change('test://a/part')
    await poll(() => ann.updated().length > 1 || undefined)
    expect([ann.updated(), bob.updated(), eve.updated()]).toEqual([['test://a', 'test://a/part'], ['test://a'], []])
    expect((await scene.record()).filter(unfollows).length).toBe(0)
    await ann.client.end()
    await scene.reached(unfollows)
    expect((await scene.record()).filter(unfollows).length).toBe(1)
  })

  it('hear of it again after the server has lost its session, and after it was connected anew', async () => {
    await using scene = await startAsking({ args: ['--expire-sessions-after', '2'] })
    const ann = await openListener(scene.gateway, 'ann')
    await ann.client.request('resources/subscribe', { uri: 'test://a' })
    await ann.change('test://none')
    await ann.change('test://none')
    await ann.change('test://none') // on a new session
    await scene.reached(follows, 2)
    await poll(async () => {
      await ann.change('test://a')
      return ann.updated().length > 0 || undefined
    })
    const before = (await scene.record()).filter(follows).length
    await scene.gateway.gateway.servers.reconnect(
      { kind: 'user', name: 'admin-token', role: 'administrator' },
      'asking',
    )
    await scene.gateway.reach('asking', 'connected')
    await scene.reached(follows, before + 1)
  })

  it('are refused what a rule denies, and what they may no longer see is not told to them', async () => {
    const denied = [...allowAll, { tools: 'test://secret', action: 'deny' as const }]
    await using scene = await startAsking({ config: { rules: denied } })
    const [ann, bob] = [await openListener(scene.gateway, 'ann'), await openListener(scene.gateway, 'bob')]
    const refused = await ann.client.request('resources/subscribe', { uri: 'test://secret' })
    expect(refused.error.message).toContain('denied')
    expect((await recordedCalls(scene.gateway)).at(-1)).toMatchObject({
      method: 'resources/subscribe',
      state: 'denied',
    })
    expect((await scene.record()).filter(follows)).toEqual([])

    await ann.client.request('resources/subscribe', { uri: 'test://a' })
    await bob.client.request('resources/subscribe', { uri: 'test://a' })
    const current = scene.gateway.gateway.config.current()
    const rules = [...denied, { tools: 'test://a/hidden', action: 'deny' as const }]
    const annRules = [{ tools: 'test://a', action: 'deny' as const }]
    const servers = { asking: { transport: 'http' as const, url: urlOf(current.servers.asking) } }
    await scene.gateway.writeConfig({ rules, servers, agents: { ann: { rules: annRules } } })
    await poll(() => scene.gateway.gateway.config.current().rules.length === 3 || undefined)
    for (const uri of ['test://a/hidden', 'test://a', 'test://a/shown']) await bob.change(uri)
    await poll(() => bob.updated().includes('test://a/shown') || undefined)
    expect(bob.updated()).toEqual(['test://a', 'test://a/shown'])
    expect(ann.updated()).toEqual([])
  })

  it('hear of it in the form in which they named it', async () => {
    await using first = await startHttpFixture('asking', ['--http'])
    await using second = await startHttpFixture('asking', ['--http'])
    const servers = {
      one: { transport: 'http' as const, url: first.url },
      two: { transport: 'http' as const, url: second.url },
    }
    await using gateway = await startTestGateway({ rules: allowAll, servers })
    await Promise.all([gateway.reach('one', 'connected'), gateway.reach('two', 'connected')])
    const session = await openSession(gateway)
    const stream = await openStream(gateway, session.id)
    const { resources } = (await session.request('resources/list')).result
    const uris = (Array.isArray(resources) ? resources : []).map((each) => String(toFields(each).uri))
    const wrapped = uris.find((uri) => uri.startsWith('sallyport://two/'))
    if (wrapped === undefined) throw new Error(`No wrapped address among ${uris.join(' ')}`)
    expect((await session.request('resources/subscribe', { uri: wrapped })).error).toEqual({})
    const uri = 'test://a'
    await session.call('one_script', { steps: [{ update: uri }] })
    await session.call('two_script', { steps: [{ update: uri }] })
    await poll(() => updatedIn(stream).length > 0 || undefined)
    expect(updatedIn(stream)).toEqual([wrapped])
    stream.close()
  })
})

describe('a stateless caller that listens', () => {
  it('is told first what is honoured, then what changes, and nothing of anybody else', async () => {
    const denied = [...allowAll, { tools: 'test://secret', action: 'deny' as const }]
    await using scene = await startAsking({ config: { rules: denied } })
    const client = await openClient(scene.gateway, 'ann')
    const wanted = { resourceSubscriptions: ['test://a', 'test://secret', 'test://nowhere', 7], toolsListChanged: true }
    const asked = await modernRequest(scene.gateway, 'subscriptions/listen', { notifications: wanted }, { id: 'sub' })
    const listening = await live(`${scene.gateway.url}/mcp`, asked)
    const first = await listening.heard(() => true)
    expect(first).toMatchObject({
      method: 'notifications/subscriptions/acknowledged',
      params: { notifications: { toolsListChanged: true, resourceSubscriptions: ['test://a'] } },
    })
    for (const uri of ['test://b', 'test://secret', 'test://a'])
      await (await client.script([{ update: uri }], { id: Math.random() })).result()
    const second = await listening.heard(isAbout('notifications/resources/updated'))
    expect(second.params).toEqual({ uri: 'test://a', _meta: { 'io.modelcontextprotocol/subscriptionId': 'sub' } })
    listening.hangUp()
    await scene.reached(unfollows)
  })
})

function urlOf(server: unknown): string {
  return String(toFields(server).url)
}

import { describe, expect, it } from 'vitest'
import { type FixtureName, startHttpFixture } from '../../fixtures/fixtures.ts'
import { poll, quickSupervision, startTestGateway } from '../../support/gateway.ts'
import { startRelay } from './relay.ts'
import { call, startScene } from './support.ts'

const supervision = { ...quickSupervision, idleMs: 100, proofTimeoutMs: 500 }

describe('a link on which nothing happens', () => {
  it.each<[string, FixtureName, string[], string]>([
    ['a ping', 'recording', ['--http'], 'ping'],
    ['the list of tools where the server knows no ping', 'recording', ['--http', '--no-ping'], 'tools/list'],
    ['the list of tools in the revision that has no ping', 'era', ['--http', '--era', '2026-07-28'], 'tools/list'],
    ['a ping over the old stream of events', 'era', ['--http', '--era', '2024-11-05'], 'ping'],
  ])('is proven by %s', async (_proof, name, args, method) => {
    await using fixture = await startHttpFixture(name, args)
    await using relay = await startRelay(fixture.url)
    await using gateway = await startTestGateway(
      { servers: { quiet: { transport: 'http', url: relay.url } } },
      { supervision },
    )
    const { since } = await gateway.reach('quiet', 'connected')
    const before = relay.requests().length
    await poll(() =>
      relay
        .requests()
        .slice(before)
        .filter((asked) => asked === method).length >= 4
        ? true
        : undefined,
    )
    expect(gateway.gateway.servers.get(undefined, 'quiet')).toMatchObject({ state: 'connected', since })
  })

  it('is given up when the server has gone silent, and made anew when it speaks again', async () => {
    await using fixture = await startHttpFixture('recording', ['--http'])
    await using relay = await startRelay(fixture.url)
    await using gateway = await startTestGateway(
      { servers: { quiet: { transport: 'http', url: relay.url, timeout: { connect: 500 } } } },
      { supervision },
    )
    await gateway.reach('quiet', 'connected')
    relay.silence(true)
    await poll(() => (gateway.gateway.servers.get(undefined, 'quiet').state === 'connected' ? undefined : true))
    expect(gateway.gateway.servers.get(undefined, 'quiet').error).toMatchObject({ class: 'timeout' })
    const client = await gateway.connectV1('tester')
    expect(await call(client, 'quiet_echo', { text: 'x' })).toMatchObject({ code: 'server-unavailable' })
    relay.silence(false)
    relay.cut()
    await gateway.reach('quiet', 'connected')
    expect(await call(client, 'quiet_echo', { text: 'back' })).toMatchObject({ text: 'back' })
  })

  it('is given up when a program no longer reads, and the program is replaced', async () => {
    await using scene = await startScene('stop-reading', { supervision })
    await scene.test.reach('bad', 'connected')
    await poll(() => (scene.gateway.servers.get(undefined, 'bad').error?.class === 'timeout' ? true : undefined))
    await scene.expectOthersWell()
  })

  it('renews a session that the server has forgotten, and stays', async () => {
    await using first = await startHttpFixture('recording', ['--http'])
    await using second = await startHttpFixture('recording', ['--http'])
    await using relay = await startRelay(first.url)
    await using gateway = await startTestGateway(
      { servers: { quiet: { transport: 'http', url: relay.url } } },
      { supervision: { ...supervision, idleMs: 300 } },
    )
    const { since } = await gateway.reach('quiet', 'connected')
    const before = relay.requests().length
    relay.leadTo(second.url)
    relay.cut()
    await poll(() => (relay.requests().slice(before).includes('initialize') ? true : undefined))
    await poll(() =>
      relay
        .requests()
        .slice(before)
        .filter((asked) => asked === 'ping').length > 3
        ? true
        : undefined,
    )
    expect(gateway.gateway.servers.get(undefined, 'quiet')).toMatchObject({ state: 'connected', since })
  })
})

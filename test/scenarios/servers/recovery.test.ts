import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { backoffDelay } from '../../../src/lib/backoff.ts'
import { startHttpFixture, stdioFixture } from '../../fixtures/fixtures.ts'
import { poll, quickSupervision, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { startRelay } from './relay.ts'
import { call, statesOf, temporaryFolder } from './support.ts'

const ways = [
  { name: 'the newest revision', args: ['--http', '--era', '2026-07-28'], transport: 'http' },
  { name: 'sessions', args: ['--http', '--era', '2025-11-25'], transport: 'http' },
  { name: 'the old stream of events', args: ['--http', '--era', '2024-11-05'], transport: 'sse' },
] as const

describe.each(ways)('a server over HTTP with $name', ({ args, transport }) => {
  it('comes back by itself; meanwhile its tools stay listed and calls say that it is away', async () => {
    await using fixture = await startHttpFixture('era', [...args])
    await using relay = await startRelay(fixture.url)
    await using gateway = await startTestGateway({
      servers: { away: { transport, url: relay.url }, good: stdioFixture('recording') },
    })
    const client = await gateway.connectV1('tester')
    expect(await call(client, 'away_echo', { text: 'here' })).toMatchObject({ text: 'here' })
    await relay.stop()
    await poll(async () =>
      (await call(client, 'away_echo', { text: 'x' })).code === 'server-unavailable' ? true : undefined,
    )
    const { tools } = await client.listTools()
    expect(tools.some(({ name }) => name === 'away_echo')).toBe(true)
    expect(await call(client, 'good_echo', { text: 'well' })).toMatchObject({ text: 'well' })
    await poll(() => ((gateway.gateway.servers.get(undefined, 'away').attempt ?? 0) >= 2 ? true : undefined))
    const { error, lastSuccessAt, protocol } = gateway.gateway.servers.get(undefined, 'away')
    expect(error).toMatchObject({ code: 'connect-failed', class: 'unreachable' })
    expect(lastSuccessAt).toBeDefined()
    expect(protocol).toBeUndefined()
    expect((await client.listTools()).tools.some(({ name }) => name === 'away_echo')).toBe(true)
    await relay.start()
    await gateway.reach('away', 'connected')
    expect(await call(client, 'away_echo', { text: 'back' })).toMatchObject({ text: 'back' })
    const states = new Set(await statesOf(gateway.gateway, 'away_echo', 3))
    expect(states).toEqual(new Set(['ok', 'failed']))
  })

  it('whose wire is cut between two calls goes on', async () => {
    await using fixture = await startHttpFixture('era', [...args])
    await using relay = await startRelay(fixture.url)
    await using gateway = await startTestGateway({ servers: { away: { transport, url: relay.url } } })
    const client = await gateway.connectV1('tester')
    for (let round = 0; round < 3; round += 1) {
      relay.cut()
      await poll(async () => ((await call(client, 'away_echo', { text: 'on' })).text === 'on' ? true : undefined))
    }
  })

  it('tells what changed while nobody could hear it', async () => {
    await using fixture = await startHttpFixture('era', [...args])
    await using relay = await startRelay(fixture.url)
    await using gateway = await startTestGateway({ servers: { away: { transport, url: relay.url } } })
    await using direct = await startTestGateway({ servers: { away: { transport, url: fixture.url } } })
    const changer = await direct.connectV1('tester')
    await new Promise((resolve) => setTimeout(resolve, 200))
    relay.silence(true)
    await call(changer, 'away_change_list', { name: 'unheard' })
    await poll(() => (offers(direct, 'unheard') ? true : undefined))
    expect(offers(gateway, 'unheard')).toBe(false)
    relay.silence(false)
    relay.cut()
    await poll(() => (offers(gateway, 'unheard') ? true : undefined))
  })
})

describe('attempts', () => {
  it('come ever more slowly, within bounds, and not all at the same time', () => {
    const settings = { first: 500, most: 60_000, factor: 2 }
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 100 }), fc.double({ min: 0, max: 1, noNaN: true }), (attempt, random) => {
        const delay = backoffDelay(attempt, settings, () => random)
        const ceiling = Math.min(60_000, 500 * 2 ** Math.max(0, attempt - 1))
        expect(delay).toBeGreaterThanOrEqual(Math.floor(ceiling / 2))
        expect(delay).toBeLessThanOrEqual(ceiling)
      }),
    )
  })

  it('go on for as long as nothing is there, and the server is found when it appears', async () => {
    await using fixture = await startHttpFixture('recording', ['--http'])
    await using relay = await startRelay(fixture.url)
    await relay.stop()
    await using gateway = await startTestGateway(
      { servers: { late: { transport: 'http', url: relay.url } } },
      { supervision: { ...quickSupervision, flaps: 2, backoff: { first: 10, most: 50, factor: 2 } } },
    )
    await poll(() => ((gateway.gateway.servers.get(undefined, 'late').attempt ?? 0) > 8 ? true : undefined))
    expect(gateway.gateway.servers.get(undefined, 'late').tools).toEqual([])
    await relay.start()
    await gateway.reach('late', 'connected')
    expect(gateway.gateway.servers.get(undefined, 'late').attempt).toBeUndefined()
  })

  it('are not made for a server that lacks a variable; it is named, the others start, and a change mends it', async () => {
    await using folder = await temporaryFolder()
    const lacking = { ...stdioFixture('recording'), env: { TOKEN: '${NO_SUCH_TOKEN}' } }
    await using gateway = await startTestGateway(
      {
        environment: ['NO_SUCH_TOKEN'],
        servers: {
          lacking,
          address: { transport: 'http', url: 'http://127.0.0.1:9/${NOT_LISTED}' },
          good: stdioFixture('recording'),
        },
      },
      { folder: folder.path, environment: { NOT_LISTED: 'set' } },
    )
    for (const [name, variable] of [
      ['lacking', 'NO_SUCH_TOKEN'],
      ['address', 'NOT_LISTED'],
    ] as const) {
      const { error, nextAttemptAt } = await gateway.reach(name, 'failed')
      expect(error).toMatchObject({ code: 'variable-missing', class: 'config' })
      expect(error?.message).toContain(variable)
      expect(nextAttemptAt).toBeUndefined()
    }
    await gateway.reach('good', 'connected')
    const client = await gateway.connectV1('tester')
    expect(await call(client, 'good_echo', { text: 'well' })).toMatchObject({ text: 'well' })
    const mended = { ...lacking, env: { SETTING: '${NO_SUCH_TOKEN:-fallback}' } }
    await gateway.writeConfig({ servers: { lacking: mended, good: stdioFixture('recording') } })
    await gateway.reach('lacking', 'connected')
    const { text } = await call(client, 'lacking_environment')
    expect(JSON.parse(text).env.SETTING).toBe('fallback')
  })
})

function offers({ gateway }: TestGateway, original: string): boolean {
  return gateway.servers.get(undefined, 'away').tools.some((tool) => tool.original === original)
}

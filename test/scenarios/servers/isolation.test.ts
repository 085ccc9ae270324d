import { once } from 'node:events'
import { createServer } from 'node:net'
import { describe, expect, it } from 'vitest'
import { startHttpFixture, stdioFixture } from '../../fixtures/fixtures.ts'
import { poll, startTestGateway } from '../../support/gateway.ts'
import { call, startScene, statesOf } from './support.ts'

describe('one bad server', () => {
  it('delays neither the start nor another server, and neither do many of every kind', async () => {
    const blackHole = createServer(() => {}).listen(0, '127.0.0.1')
    await once(blackHole, 'listening')
    const address = blackHole.address()
    const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}/mcp`
    try {
      await using gateway = await startTestGateway(
        {
          servers: {
            silent: stdioFixture('hostile', ['never-answer-initialize']),
            slow: stdioFixture('hostile', ['slow-start']),
            crashing: stdioFixture('hostile', ['crash-at-start']),
            missing: { transport: 'stdio', command: '/nowhere/at/all' },
            stubborn: stdioFixture('hostile', ['exit-on-stdin-close-ignored']),
            hole: { transport: 'http', url },
            hole_sse: { transport: 'sse', url },
            closed: { transport: 'http', url: 'http://127.0.0.1:9/mcp' },
            good: stdioFixture('recording'),
          },
        },
        { wait: false },
      )
      await gateway.reach('good', 'connected')
      const client = await gateway.connectV1('tester')
      expect(await call(client, 'good_echo', { text: 'well' })).toMatchObject({ text: 'well' })
      for (const name of ['silent', 'hole', 'hole_sse']) {
        expect(gateway.gateway.servers.get(undefined, name).state).toBe('connecting')
      }
      expect(gateway.gateway.status().healthy).toBe(false)
    } finally {
      blackHole.close()
    }
  })

  it('that hangs in many calls delays no call of another', async () => {
    await using fixture = await startHttpFixture('hostile-http', ['hang'])
    await using gateway = await startTestGateway({
      servers: {
        hanging: { ...stdioFixture('hostile', ['never-answer']), timeout: { call: 6000 } },
        hole: { transport: 'http', url: fixture.url, timeout: { call: 6000 } },
        good: stdioFixture('recording'),
      },
    })
    const client = await gateway.connectV1('tester')
    let ended = 0
    const hanging = Array.from({ length: 50 }, (_, index) =>
      call(client, index % 2 ? 'hanging_trigger' : 'hole_trigger').then((told) => {
        ended += 1
        return told
      }),
    )
    await poll(() => (gateway.gateway.status().calls.running === 50 ? true : undefined))
    for (let round = 0; round < 50; round += 1) {
      expect(await call(client, 'good_echo', { text: `well ${round}` })).toMatchObject({ text: `well ${round}` })
    }
    expect(ended).toBe(0)
    for (const told of await Promise.all(hanging)) expect(told).toMatchObject({ code: 'call-timeout' })
    expect(new Set(await statesOf(gateway.gateway, 'good_echo', 50))).toEqual(new Set(['ok']))
  })

  it('that answers a flood of calls at once mixes none of them up', async () => {
    await using scene = await startScene('wrong-ids')
    const calls = Array.from({ length: 60 }, (_, index) =>
      index % 3 === 0
        ? call(scene.client, 'bad_trigger').then(({ text }) => text === 'right answer')
        : call(scene.client, index % 3 === 1 ? 'bad_ok' : 'good_echo', { text: `own ${index}` }).then(
            ({ text }) => text === `own ${index}`,
          ),
    )
    expect((await Promise.all(calls)).filter((own) => !own)).toEqual([])
  })
})

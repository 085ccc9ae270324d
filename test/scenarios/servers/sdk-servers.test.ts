import { describe, expect, it } from 'vitest'
import { type FixtureName, startHttpFixture, stdioFixture } from '../../fixtures/fixtures.ts'
import { poll, startTestGateway } from '../../support/gateway.ts'
import { call } from './support.ts'

const servers = [
  { sdk: 'v1', over: 'stdio', protocol: '2025-11-25' },
  { sdk: 'v1', over: 'http', protocol: '2025-11-25' },
  { sdk: 'v1', over: 'sse', protocol: '2025-11-25' },
  { sdk: 'v2', over: 'stdio', protocol: '2026-07-28' },
  { sdk: 'v2', over: 'http', protocol: '2026-07-28' },
] as const

describe.each(servers)('a server written with SDK $sdk over $over', ({ sdk, over, protocol }) => {
  it('answers, tells progress and changes, and hears of cancellation', async () => {
    const fixture: FixtureName = `sdk-servers/${sdk}`
    const http = over === 'stdio' ? undefined : await startHttpFixture(fixture, [over])
    const definition = http
      ? { transport: over === 'sse' ? over : ('http' as const), url: http.url }
      : stdioFixture(fixture)
    try {
      await using gateway = await startTestGateway({ servers: { sdk: definition } })
      const server = await gateway.reach('sdk', 'connected')
      expect(server).toMatchObject({ protocol, serverInfo: { name: `sdk-${sdk}` }, complete: true })
      const client = await gateway.connectV1('tester')
      expect(await call(client, 'sdk_echo', { text: 'žluťoučký kůň' })).toMatchObject({ text: 'žluťoučký kůň' })
      expect(await call(client, 'sdk_echo', { wrong: true })).toMatchObject({ isError: true, code: undefined })

      const heard: number[] = []
      const onprogress = ({ progress }: { progress: number }) => {
        heard.push(progress)
      }
      expect(await call(client, 'sdk_count', {}, { onprogress })).toMatchObject({ text: 'counted' })
      await poll(() => (heard.length === 3 ? true : undefined))

      const controller = new AbortController()
      const waiting = call(client, 'sdk_wait', {}, { signal: controller.signal }).catch(() => undefined)
      await poll(() => (gateway.gateway.status().calls.running === 1 ? true : undefined))
      await new Promise((resolve) => setTimeout(resolve, 200))
      controller.abort()
      await waiting
      await poll(async () => ((await call(client, 'sdk_heard')).text === '1' ? true : undefined))

      await new Promise((resolve) => setTimeout(resolve, 200))
      expect(await call(client, 'sdk_grow')).toMatchObject({ text: 'grown' })
      await poll(async () => ((await call(client, 'sdk_grown')).text === 'new' ? true : undefined))
    } finally {
      await http?.stop()
    }
  })
})

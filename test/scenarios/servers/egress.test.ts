import { createServer as createHttpServer } from 'node:http'
import { describe, expect, it } from 'vitest'
import { GatewayError } from '../../../src/contract/errors.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { connectGuarded, isAllowed } from '../../../src/servers/http/egress.ts'
import { startTestGateway } from '../../support/gateway.ts'
import { listen, privateHosts, startCanary } from './canary.ts'

/** Connects as a link would, and tells where to, or why not. */
async function connectTo(
  hostname: string,
  port: number,
  allow: readonly string[] = [],
  privateAllowed = false,
): Promise<string> {
  const rules = { privateAllowed, allow }
  const waiting = { timeoutMs: 2000, clock: systemClock, signal: new AbortController().signal, onBytes() {} }
  try {
    const socket = await connectGuarded({ host: hostname, port, secure: false }, rules, waiting)
    const { remoteAddress = 'nowhere' } = socket
    socket.destroy()
    return remoteAddress
  } catch (error) {
    return error instanceof GatewayError ? error.code : String(error)
  }
}

describe('an address that was not written by an administrator', () => {
  it('never leads to a private place, in whatever form it is written', async () => {
    await using canary = await startCanary()
    for (const host of privateHosts) expect([host, await connectTo(host, canary.port)]).toEqual([host, 'egress-denied'])
    expect(canary.visits()).toBe(0)
  })

  it.each(privateHosts.filter((host) => !host.includes(':') || host.startsWith('[')))(
    'is no better when a URL has put %s in order',
    async (host) => {
      await using canary = await startCanary()
      const { hostname } = new URL(`http://${host}/`)
      expect(await connectTo(hostname, canary.port)).toBe('egress-denied')
      expect(canary.visits()).toBe(0)
    },
  )

  it.each(['8.8.8.8', '1.1.1.1', '168.63.129.17', '2606:4700::1111', '2a00:1450:4001::1'])('may be %s', (address) => {
    expect(isAllowed(address, [])).toBe(true)
  })

  it('may be what `egress.allow` names: a network, an address, or a host', async () => {
    await using canary = await startCanary()
    const reached: [string, string[], string][] = [
      ['127.0.0.1', ['127.0.0.0/8'], '127.0.0.1'],
      ['2130706433', ['127.0.0.0/8'], '127.0.0.1'],
      ['[::ffff:127.0.0.1]', ['127.0.0.0/8'], '127.0.0.1'],
      ['[::1]', ['::1'], '::1'],
      ['localhost', ['localhost'], '127.0.0.1'],
      ['localhost.', ['local*'], '127.0.0.1'],
    ]
    for (const [host, allow, address] of reached) {
      expect([host, await connectTo(host, canary.port, allow)]).toEqual([host, address])
    }
    const visits = canary.visits()
    const refused: [string, string[]][] = [
      ['127.0.0.1', ['10.0.0.0/8']],
      ['127.0.0.1', ['localhost']],
      ['[::1]', ['127.0.0.0/8', '127.0.0.1']],
      ['localhost', ['example.com', '8.8.8.8', 'not/a/network']],
    ]
    for (const [host, allow] of refused) {
      expect([host, await connectTo(host, canary.port, allow)]).toEqual([host, 'egress-denied'])
    }
    expect(canary.visits()).toBe(visits)
  })

  it('that leads nowhere is unreachable', async () => {
    expect(await connectTo('no-such-host.invalid', 80)).toBe('connect-failed')
  })
})

describe('an administrator’s own server', () => {
  it('may stand in a private place', async () => {
    await using canary = await startCanary()
    expect(await connectTo('localhost', canary.port, [], true)).toMatch(/^(127\.0\.0\.1|::1)$/)
    await expect.poll(canary.visits).toBe(1)
  })

  it.each([
    'http://127.0.0.1:PORT/steal',
    'http://localhost:PORT/steal',
    '//127.0.0.1:PORT/steal',
    'http://user:password@127.0.0.1:PORT/steal',
    'https://127.0.0.1:PORT/steal',
    'javascript:alert(1)',
    'file:///etc/passwd',
    'http://',
  ])('cannot have its messages posted to %s, which is not its own address', async (endpoint) => {
    await using canary = await startCanary()
    const server = createHttpServer((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(`event: endpoint\ndata: ${endpoint.replace('PORT', String(canary.port))}\n\n`)
    })
    const { port } = await listen(server, 0, '127.0.0.1')
    try {
      const definition = { transport: 'sse' as const, url: `http://127.0.0.1:${port}/sse`, headers: { secret: 'yes' } }
      await using gateway = await startTestGateway({ servers: { old: definition } })
      const { error, nextAttemptAt } = await gateway.reach('old', 'failed')
      expect(error).toMatchObject({ code: 'egress-denied', class: 'config' })
      expect(nextAttemptAt).toBeUndefined()
      expect(canary.visits()).toBe(0)
    } finally {
      server.closeAllConnections()
      server.close()
    }
  })
})

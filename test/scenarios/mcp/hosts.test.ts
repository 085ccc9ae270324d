import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import { beforeAll, describe, expect, it } from 'vitest'
import { Listen } from '../../../src/contract/config.ts'
import { toGatewayError } from '../../../src/contract/errors.ts'
import { createHostCheck, type HostCheck } from '../../../src/http/hosts.ts'
import { readRecord } from '../../fixtures/fixtures.ts'
import { toFields } from '../../fixtures/lib/json-rpc.ts'
import { startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { allowAll, modernRequest, type Reply, send, startRecordingGateway, textOf } from './raw.ts'

let gateway: TestGateway
let record: string

beforeAll(async () => {
  const started = await startRecordingGateway({ rules: allowAll })
  ;({ gateway, record } = started)
  return started.close
})

const portOf = (to: TestGateway) => new URL(to.url).port

/** A call that would have an effect, with a valid token, so that only the address can be what is wrong. */
async function callWith(to: TestGateway, headers: Record<string, string>, path = '/mcp'): Promise<Reply> {
  const params = { name: 'rec_write_thing', arguments: {} }
  const request = await modernRequest(to, 'tools/call', params)
  return send(to.url, { path, headers: { ...request.headers, ...headers }, body: request.body })
}

function codeOf(reply: Reply): unknown {
  return toFields(reply.error).code
}

describe('a Host that is not ours', () => {
  it.each([
    ['another name', () => 'evil.example'],
    ['another name with our port', () => `evil.example:${portOf(gateway)}`],
    ['our name at another port', () => 'localhost:1'],
    ['our name without its port', () => 'localhost'],
    ['a fragment and a user behind our name', () => `localhost:${portOf(gateway)}/#@evil`],
    ['a user before our name', () => `evil@localhost:${portOf(gateway)}`],
    ['our name as a part of another', () => `localhost.evil.example:${portOf(gateway)}`],
    ['our name behind another', () => `evil.example,localhost:${portOf(gateway)}`],
    ['a tab and more', () => `localhost:${portOf(gateway)}\tevil`],
    ['a decimal address', () => `2130706433:${portOf(gateway)}`],
    ['a trailing dot', () => `localhost.:${portOf(gateway)}`],
  ])('is refused: %s', async (_, host) => {
    const before = (await readRecord(record)).length
    const reply = await callWith(gateway, { host: host() })
    expect(reply.status).toBe(403)
    expect(codeOf(reply)).toBe('host-not-allowed')
    expect(await readRecord(record)).toHaveLength(before)
  })

  it('is refused with the hosts and origins that are expected', async () => {
    const listen = { port: 0, publicUrl: 'https://gate.example.com:8443', allowedHosts: ['gate.internal'] }
    await using named = await startTestGateway({ listen })
    const expected = `gate.example.com:8443, gate.internal, 127.0.0.1:${portOf(named)}, localhost:${portOf(named)}`
    const host = await callWith(named, { host: 'evil.example' })
    expect(toFields(host.error).message).toBe(`The host "evil.example" is not allowed. Allowed: ${expected}`)
    const origin = await callWith(named, { origin: 'https://evil.example' })
    expect(toFields(origin.error).message).toBe(
      `Requests from pages of "https://evil.example" are not allowed. Allowed: ${expected}`,
    )
  })

  it('is refused on every route, also where no token is needed', async () => {
    for (const path of ['/livez', '/readyz', '/api/status', '/api/openapi.json', '/mcp', '/']) {
      const authorization = `Bearer ${await gateway.token('agent')}`
      const reply = await send(gateway.url, { method: 'GET', path, headers: { host: 'evil.example', authorization } })
      expect(reply.status, path).toBe(403)
    }
  })

  it('is refused when it is missing, or when there are two', async () => {
    const { port } = new URL(gateway.url)
    const missing = await lines(gateway, ['GET /livez HTTP/1.0', ''])
    expect(missing).toMatch(/^HTTP\/1\.1 403/)
    expect(await lines(gateway, ['GET /livez HTTP/1.1', 'Connection: close', ''])).toMatch(/^HTTP\/1\.1 400/)
    for (const hosts of [
      [`localhost:${port}`, 'evil.example'],
      ['evil.example', `localhost:${port}`],
    ]) {
      const both = hosts.map((host) => `Host: ${host}`)
      expect(await lines(gateway, ['GET /livez HTTP/1.1', ...both, 'Connection: close', ''])).toMatch(/^HTTP\/1\.1 400/)
    }
  })

  it('is answered under each of the names of this machine, however they are written', async () => {
    for (const name of ['127.0.0.1', 'localhost', '[::1]', 'LocalHost']) {
      const reply = await callWith(gateway, { host: `${name}:${portOf(gateway)}` })
      expect(reply.status, name).toBe(200)
      expect(textOf(reply.result), name).toBe('{}')
    }
  })
})

describe('a web page', () => {
  it.each([
    'https://evil.example',
    'null',
    'file://',
    'http://localhost',
    'http://localhost:1',
    'http://localhost.evil.example',
    'chrome-extension://abcdefgh',
    '',
    'nonsense',
  ])('of the origin %j may not call', async (origin) => {
    const before = (await readRecord(record)).length
    const reply = await callWith(gateway, { origin })
    expect(reply.status).toBe(403)
    expect(codeOf(reply)).toBe('origin-not-allowed')
    expect(await readRecord(record)).toHaveLength(before)
  })

  it('of our own port on another name of this machine may', async () => {
    for (const origin of [gateway.url, `http://localhost:${portOf(gateway)}`]) {
      expect((await callWith(gateway, { origin })).status, origin).toBe(200)
    }
  })

  it('hides behind no second Origin header', async () => {
    const { headers, body } = await modernRequest(gateway, 'tools/list')
    const flat = [...Object.entries(headers), ['host', new URL(gateway.url).host]].flat()
    for (const origins of [
      [gateway.url, 'https://evil.example'],
      ['https://evil.example', gateway.url],
    ]) {
      const reply = await send(gateway.mcpUrl, {
        headers: [...flat, ...origins.flatMap((origin) => ['origin', origin])],
        body,
      })
      expect(reply.status).toBe(403)
    }
  })

  it('of another origin reaches nothing that needs no token either', async () => {
    for (const path of ['/livez', '/readyz']) {
      const reply = await send(gateway.url, { method: 'GET', path, headers: { origin: 'https://evil.example' } })
      expect(reply.status).toBe(403)
    }
  })
})

describe('a path that is not written plainly', () => {
  const odd = [
    '//mcp',
    '/mcp/../api/status',
    '/api/../mcp',
    '/mcp/%2e%2e/api/status',
    '/%6dcp',
    '/mcp%2f',
    '/mcp/',
    '/MCP',
    '/mcp;x=1',
    '/mcp/t/..',
    '/mcp/t/__proto__',
    '/mcp/s/%2e%2e',
    '/./mcp',
    '/mcp#fragment',
    '/mcp/s/rec/..',
    '\\mcp',
    '*',
    'mcp',
  ]

  it.each(odd)('%s needs a token like any other and leads nowhere', async (path) => {
    const before = (await readRecord(record)).length
    const anonymous = await callWith(gateway, { authorization: '' }, path)
    expect([400, 401], anonymous.text).toContain(anonymous.status)
    const reply = await callWith(gateway, {}, path)
    expect([400, 404], reply.text).toContain(reply.status)
    expect(await readRecord(record)).toHaveLength(before)
  })

  it('with an address of its own is refused, whatever the Host header says', async () => {
    for (const target of [`${gateway.url}/mcp`, 'http://evil.example/mcp', 'http://evil.example/livez']) {
      const reply = await callWith(gateway, {}, target)
      expect(reply.status, target).toBe(400)
      expect(codeOf(reply), target).toBe('request-invalid')
    }
  })

  it('is judged after the query is taken off, and the query changes nothing', async () => {
    expect((await callWith(gateway, {}, '/mcp?path=/api')).status).toBe(200)
    expect((await callWith(gateway, { authorization: '' }, '/mcp?path=/livez')).status).toBe(401)
  })
})

describe('behind another name', () => {
  it('and port, is answered as a proxy asks that passes the Host header on, which the guide shows', async () => {
    const guide = await readFile(new URL('../../../docs/guide/running.md', import.meta.url), 'utf8')
    const [, snippet = ''] = /```nginx\n([\s\S]*?)```/.exec(guide) ?? []
    // `$host` would be without the port, and so not the host of publicUrl.
    expect(snippet).toContain('proxy_set_header Host $http_host;')
    const listen = { port: 0, publicUrl: 'https://gate.example.com:8443', trustedProxies: ['127.0.0.1'] }
    await using named = await startTestGateway({ listen })
    const passed = { 'x-forwarded-for': '192.0.2.7', 'x-forwarded-proto': 'https' }
    const asked = (headers: Record<string, string>) => callWith(named, { ...passed, ...headers })
    const origin = 'https://gate.example.com:8443'
    expect((await asked({ host: 'gate.example.com:8443', origin })).status).toBe(200)
    expect((await asked({ host: 'gate.example.com', origin })).status).toBe(403)
  })

  it('answers to publicUrl and to allowedHosts, with and without a port, and to pages of theirs', async () => {
    await using named = await startTestGateway({
      listen: {
        port: 0,
        publicUrl: 'https://gate.example.com',
        allowedHosts: ['gate.internal', 'fixed.internal:8080'],
      },
    })
    const status = async (headers: Record<string, string>) =>
      (await send(named.url, { method: 'GET', path: '/livez', headers })).status
    for (const host of [
      'gate.example.com',
      'gate.example.com:443',
      'GATE.example.com',
      'gate.internal:9',
      'fixed.internal:8080',
    ])
      expect(await status({ host }), host).toBe(200)
    for (const host of ['example.com', 'evil.gate.example.com', 'fixed.internal', 'fixed.internal:9'])
      expect(await status({ host }), host).toBe(403)
    expect(await status({ host: 'gate.example.com', origin: 'https://gate.example.com' })).toBe(200)
    expect(await status({ host: 'gate.example.com', origin: 'https://evil.example' })).toBe(403)
    expect(named.mcpUrl).toBe('https://gate.example.com/mcp')
  })

  it('answers without a port where clients leave it out, and trusts no page of another port for that', async () => {
    const judge = async (tls: boolean, port: number, headers: Record<string, string>) => {
      const listen = Listen.parse(tls ? { tls: { cert: 'cert.pem', key: 'key.pem' } } : {})
      await using server = await startJudging(createHostCheck(listen, () => port))
      return (await send(server.url, { method: 'GET', path: '/', headers })).text
    }
    expect(await judge(false, 80, { host: 'localhost' })).toBe('fine')
    expect(await judge(false, 80, { host: 'localhost:80', origin: 'http://localhost' })).toBe('fine')
    expect(await judge(true, 443, { host: 'localhost', origin: 'https://localhost' })).toBe('fine')
    expect(await judge(true, 443, { host: 'localhost', origin: 'http://localhost' })).toBe('origin-not-allowed')
    expect(await judge(true, 443, { host: 'localhost', origin: 'https://localhost:3000' })).toBe('origin-not-allowed')
    expect(await judge(true, 443, { host: 'localhost:80' })).toBe('host-not-allowed')
    expect(await judge(false, 4777, { host: 'localhost' })).toBe('host-not-allowed')
  })

  it('believes a trusted proxy about the host that was asked for', async () => {
    await using proxied = await startTestGateway({
      listen: { port: 0, publicUrl: 'https://gate.example.com', trustedProxies: ['127.0.0.0/8', '::1'] },
    })
    const status = async (headers: Record<string, string>) =>
      (await send(proxied.url, { method: 'GET', path: '/livez', headers })).status
    expect(await status({ host: 'inner:1', 'x-forwarded-host': 'gate.example.com' })).toBe(200)
    expect(await status({ host: 'inner:1', 'x-forwarded-host': 'gate.example.com, inner' })).toBe(200)
    expect(await status({ host: 'gate.example.com', 'x-forwarded-host': 'evil.example' })).toBe(403)
    expect(await status({ host: 'inner:1' })).toBe(403)
    expect(await status({ host: 'inner:1', 'x-forwarded-host': '' })).toBe(403)
  })

  it('does not believe anybody else', async () => {
    await using direct = await startTestGateway({
      listen: { port: 0, publicUrl: 'https://gate.example.com', trustedProxies: ['10.0.0.0/8', '192.0.2.7'] },
    })
    const status = async (headers: Record<string, string>) =>
      (await send(direct.url, { method: 'GET', path: '/livez', headers })).status
    expect(await status({ host: 'evil.example', 'x-forwarded-host': 'gate.example.com' })).toBe(403)
    expect(await status({ 'x-forwarded-host': 'evil.example' })).toBe(200)
  })
})

/** The judgement alone, for ports that a test may not be allowed to take. */
async function startJudging(check: HostCheck): Promise<AsyncDisposable & { url: string }> {
  const server = createServer((request, response) => {
    try {
      check(request)
      response.end('fine')
    } catch (error) {
      response.end(toGatewayError(error).code)
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : 0
  return {
    url: `http://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: () => new Promise((resolve) => server.close(() => resolve())),
  }
}

/** Raw lines, because no client would send them so. */
function lines(to: TestGateway, head: readonly string[]): Promise<string> {
  const { hostname, port } = new URL(to.url)
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname)
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk
    })
    socket.on('error', reject)
    socket.on('close', () => resolve(text))
    socket.write(`${head.join('\r\n')}\r\n`)
  })
}

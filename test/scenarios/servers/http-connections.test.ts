import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer as createSecureServer } from 'node:https'
import { createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/lib/clock.ts'
import { createHttpClient, type HttpClient } from '../../../src/servers/http/client.ts'
import type { HttpRequest } from '../../../src/servers/http/request.ts'
import { makeCertificate } from '../mcp/certificate.ts'

const answer = (body: string, head = '') => `HTTP/1.1 200 OK\r\n${head}content-length: ${body.length}\r\n\r\n${body}`

/** A server that says to each request, by its path, exactly these bytes; and tells on which connection it came. */
async function startBytes(say: (path: string, socket: Socket) => string | undefined) {
  const requests: { connection: number; head: string }[] = []
  const sockets = new Set<Socket>()
  let connections = 0
  const server = createServer((socket) => {
    const connection = ++connections
    sockets.add(socket)
    socket.on('error', () => {}).on('close', () => sockets.delete(socket))
    socket.on('data', (chunk) => {
      const head = chunk.toString('latin1')
      requests.push({ connection, head })
      const said = say(head.split(' ')[1] ?? '', socket)
      if (said !== undefined) socket.write(said, 'latin1')
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = createClient(`http://127.0.0.1:${portOf(server)}/`)
  return {
    client,
    requests,
    sockets,
    connections: () => connections,
    async [Symbol.asyncDispose]() {
      await client.close()
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

function portOf(server: Server): number {
  const address = server.address()
  return address !== null && typeof address === 'object' ? address.port : 0
}

function createClient(address: string): HttpClient {
  const egress = { privateAllowed: true, allow: [] }
  return createHttpClient({ url: new URL(address), egress, connectTimeoutMs: 5000, clock: systemClock })
}

type Ended = { status?: number; body: string; error?: unknown; started: boolean }

function ask(client: HttpClient, path: string, more: Partial<HttpRequest> = {}) {
  const { promise, resolve } = Promise.withResolvers<Ended>()
  const found: Ended = { body: '', started: false }
  const abort = client.send(
    { method: 'GET', path, headers: {}, ...more },
    {
      onStart() {
        found.started = true
      },
      onHead(status) {
        found.status = status
      },
      onData(chunk) {
        found.body += chunk
      },
      onEnd: () => resolve(found),
      onError: (error) => resolve({ ...found, error }),
    },
  )
  return { ended: promise, abort }
}

describe('connections to a server', () => {
  it('are used again, one request at a time, and only as many as are needed are made', async () => {
    await using server = await startBytes((path) => answer(path))
    for (const path of ['/1', '/2', '/3']) expect(await ask(server.client, path).ended).toMatchObject({ body: path })
    expect(server.connections()).toBe(1)
    const both = await Promise.all([ask(server.client, '/4').ended, ask(server.client, '/5').ended])
    expect(both.map(({ body }) => body)).toEqual(['/4', '/5'])
    expect(server.connections()).toBe(2)
  })

  it('have a bound, and further requests wait for one that is free', async () => {
    const held: Socket[] = []
    await using server = await startBytes((_path, socket) => {
      held.push(socket)
      return undefined
    })
    const asked = Array.from({ length: 150 }, (_, index) => ask(server.client, `/${index}`))
    await expect.poll(() => held.length).toBe(128)
    for (const socket of held.splice(0)) socket.write(answer('done'))
    await expect.poll(() => held.length).toBe(22)
    for (const socket of held.splice(0)) socket.write(answer('done'))
    const all = await Promise.all(asked.map(({ ended }) => ended))
    expect(all.every(({ body }) => body === 'done')).toBe(true)
    expect(server.connections()).toBe(128)
  })

  it('carry head and body of a request in one piece', async () => {
    await using server = await startBytes((path) => answer(path))
    const headers = { 'content-type': 'application/json' }
    await ask(server.client, '/in-one', { method: 'POST', headers, body: Buffer.from('{"a":1}') }).ended
    expect(server.requests.map(({ head }) => head)).toEqual([
      expect.stringMatching(/^POST \/in-one HTTP\/1\.1\r\n(.+\r\n)+content-length: 7\r\n\r\n\{"a":1\}$/),
    ])
  })

  it.each([
    ['says that it closes', answer('ok', 'connection: close\r\n')],
    ['says more than it was asked', `${answer('ok')}${answer('stolen')}`],
    ['keeps nothing open', answer('ok', 'keep-alive: timeout=1\r\n')],
    ['speaks HTTP/1.0', 'HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok'],
  ])('are not used again with a server that %s', async (_how, said) => {
    await using server = await startBytes(() => said)
    expect(await ask(server.client, '/1').ended).toMatchObject({ body: 'ok' })
    expect(await ask(server.client, '/2').ended).toMatchObject({ body: 'ok' })
    expect(server.requests.map(({ connection }) => connection)).toEqual([1, 2])
  })

  it('are not used again with a server that answers before it has read the request', async () => {
    await using server = await startBytes((path, socket) => {
      if (path === '/large') socket.pause()
      return answer(path)
    })
    const body = Buffer.alloc(16 * 1024 * 1024, 'x')
    expect(await ask(server.client, '/large', { method: 'POST', body }).ended).toMatchObject({ body: '/large' })
    expect(await ask(server.client, '/2').ended).toMatchObject({ body: '/2' })
    expect(server.requests.map(({ connection }) => connection)).toEqual([1, 2])
  })

  it('that are spoken on unasked are given up, and the next request gets its own answer', async () => {
    await using server = await startBytes((path) => answer(path))
    await ask(server.client, '/1').ended
    for (const socket of server.sockets) socket.write(answer('planted'))
    await expect.poll(() => server.sockets.size).toBe(0)
    expect(await ask(server.client, '/2').ended).toMatchObject({ body: '/2' })
  })

  it('that the server closes while they are idle are replaced without anybody noticing', async () => {
    await using server = await startBytes((path) => answer(path))
    await ask(server.client, '/1').ended
    for (const socket of server.sockets) socket.end()
    await expect.poll(() => server.sockets.size).toBe(0)
    expect(await ask(server.client, '/2').ended).toMatchObject({ body: '/2' })
    expect(server.connections()).toBe(2)
  })

  it('that break under a request fail it, and it is not sent again by itself', async () => {
    await using server = await startBytes((path, socket) => {
      if (path !== '/broken') return answer(path)
      socket.destroy()
      return undefined
    })
    await ask(server.client, '/1').ended
    expect(await ask(server.client, '/broken').ended).toMatchObject({ started: true, error: { code: 'ECONNRESET' } })
    expect(server.requests.filter(({ head }) => head.includes('/broken'))).toHaveLength(1)
  })

  it('end with a request that is taken back, and the next one gets its own answer', async () => {
    await using server = await startBytes((path) => (path === '/slow' ? undefined : answer(path)))
    const slow = ask(server.client, '/slow')
    await expect.poll(() => server.requests.length).toBe(1)
    slow.abort(new Error('taken back'))
    expect(await slow.ended).toMatchObject({ error: { message: 'taken back' } })
    await expect.poll(() => server.sockets.size).toBe(0)
    expect(await ask(server.client, '/2').ended).toMatchObject({ body: '/2' })
  })

  it.each([
    ['a header with a line of its own', '/', { evil: 'a\r\nhost: b' }],
    ['a header whose name is one', '/', { 'a\r\nb': 'c' }],
    ['a length of its own', '/', { 'content-length': '0' }],
    ['a coding of its own', '/', { 'transfer-encoding': 'chunked' }],
    ['a header that is no latin1', '/', { name: '\u{1f600}' }],
    ['a path with a blank', '/a HTTP/1.1', {}],
    ['a path with a line', '/a\r\nb', {}],
  ])('never carry a request with %s', async (_with, path, headers) => {
    await using server = await startBytes(() => answer('ok'))
    expect(await ask(server.client, path, { headers }).ended).toMatchObject({
      started: false,
      error: { code: 'connect-failed', reach: 'unsent' },
    })
    expect(server.connections()).toBe(0)
  })

  it('that are closed fail what is under way and take nothing new', async () => {
    await using server = await startBytes(() => undefined)
    const under = ask(server.client, '/1')
    await expect.poll(() => server.requests.length).toBe(1)
    await server.client.close()
    expect(await under.ended).toMatchObject({ error: { code: 'server-unavailable' } })
    expect(await ask(server.client, '/2').ended).toMatchObject({
      started: false,
      error: { code: 'server-unavailable' },
    })
  })

  it('prove who the server is before anything is sent', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sallyport-tls-'))
    const files = await makeCertificate(folder)
    const [cert, key] = await Promise.all([readFile(files.cert, 'utf8'), readFile(files.key, 'utf8')])
    let requests = 0
    const serve = async (host: string) => {
      const server = createSecureServer({ cert, key }, (_request, response) => {
        requests += 1
        response.end('proven')
      }).listen(0, host)
      await once(server, 'listening')
      return server
    }
    const [named, unnamed] = [await serve('127.0.0.1'), await serve('127.0.0.2')]
    const port = portOf(named)
    const usual = getCACertificates('default')
    try {
      const distrusting = createClient(`https://127.0.0.1:${port}/`)
      const refused = await ask(distrusting, '/').ended
      expect(refused).toMatchObject({ started: false, error: { code: 'connect-failed', reach: 'unsent' } })
      expect(requests).toBe(0)
      setDefaultCACertificates([...usual, cert])
      for (const host of ['127.0.0.1', 'localhost']) {
        const trusting = createClient(`https://${host}:${port}/`)
        expect(await ask(trusting, '/').ended).toMatchObject({ status: 200, body: 'proven' })
        await trusting.close()
      }
      const before = requests
      const misnamed = createClient(`https://127.0.0.2:${portOf(unnamed)}/`)
      const error = { code: 'connect-failed', details: { errno: 'ERR_TLS_CERT_ALTNAME_INVALID' }, reach: 'unsent' }
      expect(await ask(misnamed, '/').ended).toMatchObject({ started: false, error })
      expect(requests).toBe(before)
    } finally {
      setDefaultCACertificates(usual)
      named.close()
      unnamed.close()
      await rm(folder, { recursive: true })
    }
  })
})

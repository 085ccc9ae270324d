import { readFile } from 'node:fs/promises'
import { request } from 'node:https'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { stdioFixture } from '../../fixtures/fixtures.ts'
import { parseJson, toFields } from '../../fixtures/lib/json-rpc.ts'
import { startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { makeCertificate } from './certificate.ts'
import { modernRequest, send, temporaryFolder, textOf } from './raw.ts'

async function sendSecurely(
  gateway: TestGateway,
  ca: Buffer,
  sending: { method?: string; path: string; headers?: Record<string, string>; body?: string },
): Promise<{ status: number; message: Record<string, unknown> }> {
  const { hostname, port } = new URL(gateway.url)
  const { method = 'POST', path, headers, body } = sending
  return new Promise((resolve, reject) => {
    const sent = request({ hostname, port, path, method, headers, ca, agent: false }, (response) => {
      let text = ''
      response.on('data', (chunk) => {
        text += chunk
      })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, message: toFields(parseJson(text)) }))
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

it('serves HTTPS and nothing else when a certificate is configured', async () => {
  await using folder = await temporaryFolder()
  const tls = await makeCertificate(folder.path)
  const ca = await readFile(tls.cert)
  await using gateway = await startTestGateway({
    listen: { port: 0, tls },
    servers: { rec: stdioFixture('recording') },
  })
  expect(gateway.url).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/)
  const params = { name: 'rec_echo', arguments: { text: 'secret' } }
  const { headers, body } = await modernRequest(gateway, 'tools/call', params)
  const reply = await sendSecurely(gateway, ca, { path: '/mcp', headers, body })
  expect(textOf(reply.message.result)).toBe('secret')
  expect((await sendSecurely(gateway, ca, { method: 'GET', path: '/livez' })).status).toBe(200)
  expect((await sendSecurely(gateway, ca, { method: 'GET', path: '/api/status' })).status).toBe(401)
  const origin = gateway.url
  expect((await sendSecurely(gateway, ca, { path: '/mcp', headers: { ...headers, origin }, body })).status).toBe(200)
  const plain = send(gateway.url.replace('https', 'http'), { method: 'GET', path: '/livez' })
  await expect(plain).rejects.toThrow()
})

it('ends with HTTPS clients still connected', async () => {
  await using folder = await temporaryFolder()
  const tls = await makeCertificate(folder.path)
  const ca = await readFile(tls.cert)
  await using gateway = await startTestGateway({ listen: { port: 0, tls } })
  const { headers, body } = await modernRequest(gateway, 'subscriptions/listen', {
    notifications: { toolsListChanged: true },
  })
  const { hostname, port } = new URL(gateway.url)
  const sent = request({ hostname, port, path: '/mcp', method: 'POST', headers, ca, agent: false })
  const ended = new Promise<string>((resolve, reject) => {
    sent.on('error', reject)
    sent.on('response', (response) => {
      let text = ''
      response.on('data', (chunk) => {
        text += chunk
      })
      response.on('end', () => resolve(text))
    })
  })
  const opened = new Promise((resolve) => sent.on('response', resolve))
  sent.end(body)
  await opened
  await gateway.stop()
  expect(await ended).toContain('"resultType":"complete"')
})

it('does not start with a certificate that cannot be read or is none, and says which', async () => {
  await using folder = await temporaryFolder()
  const { cert, key } = await makeCertificate(folder.path)
  const missing = join(folder.path, 'missing.pem')
  await expect(startTestGateway({ listen: { port: 0, tls: { cert: missing, key } } })).rejects.toMatchObject({
    code: 'config-unreadable',
    message: expect.stringContaining(missing),
  })
  await expect(startTestGateway({ listen: { port: 0, tls: { cert, key: cert } } })).rejects.toMatchObject({
    code: 'config-invalid',
    message: expect.stringContaining('listen.tls'),
  })
})

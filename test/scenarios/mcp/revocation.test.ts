import type { IncomingMessage } from 'node:http'
import { describe, expect, it } from 'vitest'
import { adminToken } from '../../../src/identity/identity.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { poll, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { firstAdministrator, type TestPerson } from '../../support/people.ts'
import { initialize, modernRequest, open, send } from './raw.ts'

type Stream = { readonly ended: () => boolean; close(): void }

const accept = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }

/** Opens a session of the older era with a token, and its standing stream. */
async function openStanding(gateway: TestGateway, token: string): Promise<{ session: string; stream: Stream }> {
  const headers = { ...accept, authorization: `Bearer ${token}` }
  const opened = await send(gateway.mcpUrl, { headers, body: JSON.stringify(initialize()) })
  const session = String(opened.headers['mcp-session-id'])
  return {
    session,
    stream: await watch(gateway, { method: 'GET', headers: { ...headers, 'mcp-session-id': session } }),
  }
}

/** Opens a subscription of the newer era with a token. */
async function openListening(gateway: TestGateway, token: string): Promise<Stream> {
  const params = { notifications: { toolsListChanged: true } }
  const authorization = `Bearer ${token}`
  return watch(gateway, await modernRequest(gateway, 'subscriptions/listen', params, { headers: { authorization } }))
}

async function watch(gateway: TestGateway, sending: Parameters<typeof open>[1]): Promise<Stream> {
  const request = open(gateway.mcpUrl, sending)
  let ended = false
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    request.on('response', resolve).on('error', reject)
    request.end(sending.body)
  })
  expect(response.statusCode).toBe(200)
  response.on('close', () => {
    ended = true
  })
  response.resume()
  return { ended: () => ended, close: () => request.destroy() }
}

const whenEnded = (stream: Stream) => poll(() => stream.ended() || undefined)

describe('what a token has opened', () => {
  it('ends when it is revoked; what another token of the same agent has opened stays', async () => {
    await using gateway = await startTestGateway({})
    const { tokens } = gateway.gateway
    const [leaving, staying] = [
      await tokens.create(adminToken, { agent: 'a' }),
      await tokens.create(adminToken, { agent: 'a' }),
    ]
    const old = await openStanding(gateway, leaving.token)
    const modern = await openListening(gateway, leaving.token)
    const others = [(await openStanding(gateway, staying.token)).stream, await openListening(gateway, staying.token)]
    await tokens.revoke(adminToken, leaving.id)
    await whenEnded(old.stream)
    await whenEnded(modern)
    expect(others.map((stream) => stream.ended())).toEqual([false, false])
    const headers = { ...accept, authorization: `Bearer ${staying.token}`, 'mcp-session-id': old.session }
    const body = JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'tools/list' })
    expect((await send(gateway.mcpUrl, { headers, body })).status).toBe(404)
    for (const stream of others) stream.close()
  })

  it('ends when the stream alone was opened with it, in a session of another token', async () => {
    await using gateway = await startTestGateway({})
    const { tokens } = gateway.gateway
    const [leaving, staying] = [
      await tokens.create(adminToken, { agent: 'a' }),
      await tokens.create(adminToken, { agent: 'a' }),
    ]
    const { session, stream: first } = await openStanding(gateway, staying.token)
    const headers = { ...accept, authorization: `Bearer ${leaving.token}`, 'mcp-session-id': session }
    const stream = await watch(gateway, { method: 'GET', headers })
    await whenEnded(first) // there is one standing stream, the newest
    await tokens.revoke(adminToken, leaving.id)
    await whenEnded(stream)
  })

  const ends: [string, (gateway: TestGateway, ada: TestPerson, name: string) => Promise<unknown>][] = [
    ['its session ends', (_, ada, name) => ada.request('DELETE', `/api/sessions/${name}`)],
    ['its owner is disabled', (_, ada) => ada.request('PATCH', '/api/users/bob', { disabled: true })],
    ['its owner is removed', (_, ada) => ada.request('DELETE', '/api/users/bob')],
  ]
  it.each(ends)('ends when %s', async (_, end) => {
    await using gateway = await startTestGateway({})
    const ada = await firstAdministrator(gateway)
    const password = 'correct horse battery'
    await ada.request('POST', '/api/users', { name: 'bob', role: 'member', password })
    const session = (await ada.request('POST', '/api/sessions', { owner: 'bob' })).message
    const { stream } = await openStanding(gateway, String(session.token))
    const listening = await openListening(gateway, String(session.token))
    await end(gateway, ada, String(session.name))
    await whenEnded(stream)
    await whenEnded(listening)
  })

  it('ends by itself when its token expires', async () => {
    let ahead = 0
    await using gateway = await startTestGateway({}, { clock: { ...systemClock, now: () => Date.now() + ahead } })
    const expiresAt = new Date(Date.now() + 3_600_000).toISOString()
    const { token } = await gateway.gateway.tokens.create(adminToken, { agent: 'guest', expiresAt })
    const { stream } = await openStanding(gateway, token)
    ahead = 3_600_001
    await whenEnded(stream)
  })
})

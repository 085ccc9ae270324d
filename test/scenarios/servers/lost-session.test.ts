import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { readRecord, startHttpFixture } from '../../fixtures/fixtures.ts'
import { toFields } from '../../fixtures/lib/json-rpc.ts'
import { acceptTools, poll, startTestGateway } from '../../support/gateway.ts'
import { startPlainServer } from './plain-server.ts'
import { startRelay } from './relay.ts'
import { call, recordOf, statesOf, temporaryFolder } from './support.ts'

const rules = [{ tools: 'server_write_thing', action: 'allow' as const }]

describe('a server that forgets the session', () => {
  it('gets a new one, and the call it refused once more, noted in the record', async () => {
    await using folder = await temporaryFolder()
    const record = join(folder.path, 'record.jsonl')
    await using fixture = await startHttpFixture('recording', [
      '--http',
      '--expire-sessions-after',
      '2',
      '--record',
      record,
    ])
    await using relay = await startRelay(fixture.url)
    await using gateway = await startTestGateway({ servers: { server: { transport: 'http', url: relay.url } }, rules })
    const client = await gateway.connectV1('tester')
    for (let nonce = 1; nonce <= 6; nonce += 1) {
      expect((await call(client, 'server_write_thing', { nonce })).text).toBe(JSON.stringify({ nonce }))
    }
    const records = await recordOf(gateway.gateway, 'server_write_thing', 6)
    expect(records.map(({ state }) => state)).toEqual(Array.from({ length: 6 }, () => 'ok'))
    expect(records.map(({ resent = false }) => resent)).toEqual([false, false, true, false, true, false])
    expect((await readRecord(record)).map((done) => toFields(done.arguments).nonce)).toEqual([1, 2, 3, 4, 5, 6])
    expect(relay.requests().filter((method) => method === 'initialize')).toHaveLength(3)
    expect(gateway.gateway.servers.get(undefined, 'server').state).toBe('connected')
  })

  it('is asked for one new session however many calls find out, and does each of them once', async () => {
    await using folder = await temporaryFolder()
    const record = join(folder.path, 'record.jsonl')
    await using fixture = await startHttpFixture('recording', [
      '--http',
      '--expire-sessions-after',
      '10',
      '--record',
      record,
    ])
    await using relay = await startRelay(fixture.url)
    await using gateway = await startTestGateway({ servers: { server: { transport: 'http', url: relay.url } }, rules })
    const client = await gateway.connectV1('tester')
    const nonces = Array.from({ length: 20 }, (_, index) => index)
    const told = await Promise.all(nonces.map((nonce) => call(client, 'server_write_thing', { nonce })))
    expect(told.map(({ text }) => text)).toEqual(nonces.map((nonce) => JSON.stringify({ nonce })))
    expect(relay.requests().filter((method) => method === 'initialize')).toHaveLength(2)
    const done = (await readRecord(record)).map((each) => toFields(each.arguments).nonce)
    expect(done.toSorted((a, b) => Number(a) - Number(b))).toEqual(nonces)
    const records = await recordOf(gateway.gateway, 'server_write_thing', 20)
    // Those that came while the session was being renewed waited for it instead.
    expect(records.some(({ resent }) => resent)).toBe(true)
  })

  it('because it was started anew is met again without anybody noticing, and its changes are heard', async () => {
    await using first = await startHttpFixture('recording', ['--http'])
    await using second = await startHttpFixture('recording', ['--http'])
    await using relay = await startRelay(first.url)
    await using gateway = await startTestGateway({ servers: { server: { transport: 'http', url: relay.url } } })
    const client = await gateway.connectV1('tester')
    const { since } = gateway.gateway.servers.get(undefined, 'server')
    relay.leadTo(second.url)
    relay.cut()
    await poll(async () => ((await call(client, 'server_echo', { text: 'again' })).text === 'again' ? true : undefined))
    expect(gateway.gateway.servers.get(undefined, 'server')).toMatchObject({ state: 'connected', since })
    await poll(async () => {
      await call(client, 'server_change_list', { name: 'later' })
      await acceptTools(gateway, 'server')
      return (await call(client, 'server_later', { a: 1 })).text === '{"a":1}' ? true : undefined
    })
  })

  it('and says so in words of JSON-RPC is understood all the same', async () => {
    let forgotten = 0
    await using server = await startPlainServer(['write_thing'], ({ id, method, session }) => {
      if (method !== 'tools/call') return undefined
      if (session !== 'session-1') return { text: `done in ${session}` }
      forgotten += 1
      return { status: 404, body: { jsonrpc: '2.0', id, error: { code: -32001, message: 'Session not found' } } }
    })
    await using gateway = await startTestGateway({ servers: { server: { transport: 'http', url: server.url } }, rules })
    const client = await gateway.connectV1('tester')
    expect(await call(client, 'server_write_thing')).toMatchObject({ text: 'done in session-2', isError: false })
    expect(forgotten).toBe(1)
  })

  it('and gives no new one fails the call, which was never done, and is connected anew', async () => {
    await using server = await startForgetful()
    await using gateway = await startTestGateway({ servers: { server: { transport: 'http', url: server.url } }, rules })
    const client = await gateway.connectV1('tester')
    server.forget()
    const told = await call(client, 'server_write_thing')
    expect(told).toMatchObject({ isError: true })
    expect(told.code).not.toBe('call-unknown')
    expect(await statesOf(gateway.gateway, 'server_write_thing')).toEqual(['failed'])
    await poll(() => (gateway.gateway.servers.get(undefined, 'server').state === 'connected' ? undefined : true))
    expect(await call(client, 'server_write_thing')).toMatchObject({ code: 'server-unavailable' })
    server.remember()
    await gateway.reach('server', 'connected')
    expect(await call(client, 'server_write_thing')).toMatchObject({ text: 'done' })
  })
})

/** A server that, while it forgets, knows no session and makes none. */
async function startForgetful(): Promise<AsyncDisposable & { readonly url: string; forget(): void; remember(): void }> {
  let forgetful = false
  const server = await startPlainServer(['write_thing'], ({ method }) => {
    if (forgetful) return { status: method === 'initialize' ? 500 : 404 }
    return method === 'tools/call' ? { text: 'done' } : undefined
  })
  return {
    ...server,
    forget() {
      forgetful = true
    },
    remember() {
      forgetful = false
    },
  }
}

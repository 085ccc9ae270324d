import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { stdioFixture } from '../../fixtures/fixtures.ts'
import { poll, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import { cookieOf, firstAdministrator, password, sendJson } from '../../support/people.ts'
import { createMovableClock } from '../mcp/clock.ts'
import { allowAll, ask, namesIn, openSession, send } from '../mcp/raw.ts'
import { inlineServer } from '../servers/support.ts'

const statusOf = async ({ url }: TestGateway, path: string) => (await send(url, { method: 'GET', path })).status

const silent = stdioFixture('hostile', ['never-answer-initialize'])

/** Greets a moment after it was started. */
const late = inlineServer(`
  function handle({ id, method }) {
    if (method === 'initialize') setTimeout(() => say({ id, result: greeting }), 500)
    else if (method === 'tools/list') say({ id, result: { tools: [tool('found')] } })
    else if (id) say({ id, error: { code: -32601, message: 'Method not found' } })
  }
`)

describe('/readyz', () => {
  it('answers 200 once every server has had its first attempt, however that ended', async () => {
    const servers = { late, closed: { transport: 'http' as const, url: 'http://127.0.0.1:9/mcp' } }
    await using gateway = await startTestGateway({ servers }, { wait: false })
    expect(await statusOf(gateway, '/livez')).toBe(200)
    expect(await statusOf(gateway, '/readyz')).toBe(503)
    await poll(async () => (await statusOf(gateway, '/readyz')) === 200 || undefined)
    expect(gateway.gateway.servers.get(undefined, 'late').state).toBe('connected')
    expect(gateway.gateway.servers.get(undefined, 'closed').state).not.toBe('connected')
  })

  it('does not wait longer than `listen.ready` for a server that hangs, and stays 200 when one fails later', async () => {
    const clock = createMovableClock()
    const listen = { port: 0, ready: 8000 }
    await using gateway = await startTestGateway({ listen, servers: { silent } }, { wait: false, clock })
    clock.advance(7000)
    expect(await statusOf(gateway, '/readyz')).toBe(503)
    clock.advance(1001)
    await poll(async () => (await statusOf(gateway, '/readyz')) === 200 || undefined)
    expect(gateway.gateway.servers.get(undefined, 'silent').state).toBe('connecting')
    // Step by step: each attempt sets its own timers when it begins.
    await poll(() => {
      clock.advance(60_000)
      return gateway.gateway.servers.get(undefined, 'silent').state === 'failed' || undefined
    })
    expect(await statusOf(gateway, '/readyz')).toBe(200)
  })
})

describe('the first list of an agent', () => {
  it.each(['stateless', 'session'])('waits for a server that is still connecting (%s)', async (era) => {
    await using gateway = await startTestGateway({ servers: { late }, limits: { firstList: 30_000 } }, { wait: false })
    const list = era === 'session' ? (await openSession(gateway)).request('tools/list') : ask(gateway, 'tools/list')
    expect(namesIn((await list).result)).toContain('late_found')
  })

  it('does not wait for a server that hangs longer than `limits.firstList`, nor does any later one', async () => {
    const clock = createMovableClock()
    const config = { servers: { silent, good: stdioFixture('recording') }, limits: { firstList: 20_000 } }
    await using gateway = await startTestGateway(config, { wait: false, clock })
    await gateway.reach('good', 'connected')
    let listed = false
    const first = ask(gateway, 'tools/list').then((reply) => {
      listed = true
      return reply
    })
    for (let n = 0; n < 50; n++) await turn()
    expect(listed).toBe(false)
    clock.advance(20_001)
    expect(namesIn((await first).result)).toContain('good_echo')
    expect(namesIn((await ask(gateway, 'tools/list')).result)).toContain('good_echo')
  })

  it('does not wait at the address of a server for another one', async () => {
    const config = { servers: { silent, good: stdioFixture('recording') }, limits: { firstList: 600_000 } }
    await using gateway = await startTestGateway(config, { wait: false })
    const reply = await ask(gateway, 'tools/list', {}, { path: '/mcp/s/good' })
    expect(namesIn(reply.result)).toContain('echo')
  })
})

describe('connections', () => {
  it.each([
    [undefined, 'timeout=65'],
    [30_000, 'timeout=30'],
  ])('that are idle are kept for as long as `listen.keepAlive` says (%s)', async (keepAlive, told) => {
    await using gateway = await startTestGateway({ listen: { port: 0, ...(keepAlive && { keepAlive }) } })
    const headers = { connection: 'keep-alive' }
    expect((await send(gateway.url, { method: 'GET', path: '/livez', headers })).headers['keep-alive']).toBe(told)
  })
})

describe('the sign-in cookie', () => {
  const signedIn = async (gateway: TestGateway) =>
    String(cookieOf(await sendJson(gateway, 'POST', '/api/sign-in', { name: 'ada', password })))
  const me = (gateway: TestGateway, cookie: string) =>
    send(gateway.url, { method: 'GET', path: '/api/me', headers: { cookie, host: new URL(gateway.url).host } })

  it('survives a restart on another port, and two gateways on one host do not replace each other’s', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sallyport-cookie-'))
    const first = await startTestGateway({}, { folder })
    await firstAdministrator(first)
    const cookie = await signedIn(first)
    await first.close()
    await using again = await startTestGateway({}, { folder })
    await using other = await startTestGateway({})
    await firstAdministrator(other)
    const theirs = await signedIn(other)
    expect(again.url).not.toBe(first.url)
    expect(theirs.split('=')[0]).not.toBe(cookie.split('=')[0])
    // A browser sends both to both.
    for (const gateway of [again, other]) expect((await me(gateway, `${cookie}; ${theirs}`)).status).toBe(200)
    await rm(folder, { recursive: true, force: true })
  })
})

it('gives calls under way as long as `limits.grace` says when it stops', async () => {
  const clock = createMovableClock()
  const config = { servers: { rec: stdioFixture('recording') }, rules: allowAll, limits: { grace: 600_000 } }
  await using gateway = await startTestGateway(config, { clock })
  let ended = false
  const call = ask(gateway, 'tools/call', { name: 'rec_echo', arguments: { text: 'slow', delayMs: 60_000 } })
    .catch(() => undefined)
    .finally(() => {
      ended = true
    })
  await poll(() => gateway.gateway.status().calls.running === 1 || undefined)
  const stopped = gateway.stop()
  clock.advance(10_000)
  for (let n = 0; n < 50; n++) await turn()
  expect(ended).toBe(false)
  clock.advance(600_000)
  await Promise.all([call, stopped])
})

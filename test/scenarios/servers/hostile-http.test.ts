import { describe, expect, it } from 'vitest'
import { readRecord } from '../../fixtures/fixtures.ts'
import type { HttpModeName } from '../../fixtures/hostile/http-modes.ts'
import { toFields } from '../../fixtures/lib/json-rpc.ts'
import { startTestGateway } from '../../support/gateway.ts'
import { type PlainAnswer, startPlainServer } from './plain-server.ts'
import { call, operator, recordOf, type SceneOptions, startHttpScene, statesOf } from './support.ts'

type Expectation = {
  readonly mode: HttpModeName
  /** What the caller of a reading and of a writing tool is told. */
  readonly told: { readonly read: string; readonly write: string }
  readonly states: { readonly read: string; readonly write: string }
  /** How often the reading call reaches the server; the writing one never does so twice. */
  readonly sent?: number
  readonly options?: SceneOptions
}

const broken = { told: { read: 'server-broken', write: 'call-unknown' }, states: { read: 'failed', write: 'unknown' } }
const tooLarge = {
  told: { read: 'result-too-large', write: 'call-unknown' },
  states: { read: 'failed', write: 'unknown' },
}
const expectations: Expectation[] = [
  {
    mode: 'hang',
    told: { read: 'call-timeout', write: 'call-unknown' },
    states: { read: 'timeout', write: 'unknown' },
    options: { timeout: { call: 500 } },
  },
  { mode: 'reset', ...broken },
  { mode: 'half-sse', ...broken, sent: 2 },
  { mode: 'sse-no-answer', ...broken, sent: 2 },
  { mode: 'wrong-id', ...broken },
  { mode: 'endless-event', ...tooLarge, options: { limits: { message: 1_000_000 } } },
  { mode: 'huge-chunked', ...tooLarge, options: { limits: { message: 1_000_000 } } },
  { mode: 'gzip-bomb', ...broken },
  {
    mode: 'server-error',
    told: { read: 'server-failed', write: 'call-unknown' },
    states: { read: 'failed', write: 'unknown' },
  },
  {
    mode: 'too-many',
    told: { read: 'limit-exceeded', write: 'limit-exceeded' },
    states: { read: 'failed', write: 'failed' },
  },
]

describe('a call that a server answers over HTTP', () => {
  it.each(expectations)('with $mode ends clearly, once, and hurts nobody else', async (expected) => {
    await using scene = await startHttpScene(expected.mode, [], expected.options)
    const before = process.memoryUsage().rss
    const reading = call(scene.client, 'bad_trigger')
    await scene.expectOthersWell()
    expect(await reading).toMatchObject({ isError: true, code: expected.told.read })
    expect(await call(scene.client, 'bad_trigger_write')).toMatchObject({ isError: true, code: expected.told.write })
    expect(process.memoryUsage().rss - before).toBeLessThan(300_000_000)
    expect((await recordOf(scene.gateway, 'bad_trigger')).map(({ state }) => state)).toEqual([expected.states.read])
    expect((await recordOf(scene.gateway, 'bad_trigger_write')).map(({ state }) => state)).toEqual([
      expected.states.write,
    ])
    const names = (await readRecord(scene.record)).map(({ name }) => name)
    expect(names.filter((name) => name === 'trigger')).toHaveLength(expected.sent ?? 1)
    expect(names.filter((name) => name === 'trigger_write')).toHaveLength(1)
    await scene.expectOthersWell()
  })

  it.each(['half-sse', 'sse-no-answer'] as const)('with %s is asked again once, if it only reads', async (mode) => {
    await using scene = await startHttpScene(mode, ['--times', '1'])
    expect(await call(scene.client, 'bad_trigger')).toMatchObject({ text: 'behaved', isError: false })
    const [ended] = await recordOf(scene.gateway, 'bad_trigger')
    expect(ended).toMatchObject({ state: 'ok', resent: true })
  })

  it('with status 500 again and again fails each time, and the server stays connected', async () => {
    await using scene = await startHttpScene('server-error')
    const { since } = scene.gateway.servers.get(undefined, 'bad')
    for (let round = 0; round < 8; round += 1) {
      expect(await call(scene.client, 'bad_trigger')).toMatchObject({ code: 'server-failed' })
    }
    expect(scene.gateway.servers.get(undefined, 'bad')).toMatchObject({ state: 'connected', since })
  })

  it('with status 429 tells the caller how long to wait', async () => {
    await using scene = await startHttpScene('too-many')
    const { result } = await call(scene.client, 'bad_trigger')
    expect(toFields(toFields(result._meta)['sallyport/error'])).toMatchObject({ code: 'limit-exceeded', retryAfter: 1 })
  })

  it('with status 401 leaves the server waiting for other credentials, without its tools', async () => {
    await using scene = await startHttpScene('unauthorized', ['--on', 'call', '--times', '1'])
    expect(await call(scene.client, 'bad_trigger_write')).toMatchObject({ isError: true, code: 'server-auth' })
    expect((await recordOf(scene.gateway, 'bad_trigger_write')).map(({ state }) => state)).toEqual(['failed'])
    const server = await scene.test.reach('bad', 'auth-required')
    expect(server.error).toMatchObject({ code: 'server-auth', class: 'auth' })
    expect(server.nextAttemptAt).toBeUndefined()
    const { tools } = await scene.client.listTools()
    expect(tools.filter(({ name }) => name.startsWith('bad_'))).toEqual([])
    await scene.expectOthersWell()
    await scene.gateway.servers.reconnect(operator, 'bad')
    await scene.test.reach('bad', 'connected')
    expect(await call(scene.client, 'bad_trigger')).toMatchObject({ text: 'behaved' })
  })
})

describe('a refusal of one call over HTTP', () => {
  const refusals: Record<string, (id: unknown) => PlainAnswer> = {
    forbidden: () => ({ status: 403 }),
    spoken: (id) => ({
      status: 400,
      body: { jsonrpc: '2.0', error: { code: -32077, message: 'Not today', data: { why: 'closed' } }, id },
    }),
    about_another: () => ({ status: 400, body: { jsonrpc: '2.0', error: { code: -1, message: 'x' }, id: 987 } }),
    unspoken: () => ({ status: 400, body: 'no JSON-RPC' }),
    busy: () => ({ status: 503, headers: { 'retry-after': '99999' } }),
    moved: () => ({ status: 307, headers: { location: 'http://127.0.0.1:9/elsewhere' } }),
  }

  it('is that call’s failure: the server stays connected, and the other tools work', async () => {
    await using server = await startPlainServer([...Object.keys(refusals), 'fine'], ({ id, method, tool }) => {
      if (method !== 'tools/call') return undefined
      return refusals[tool]?.(id) ?? { text: 'fine' }
    })
    await using gateway = await startTestGateway({
      servers: { bad: { transport: 'http', url: server.url } },
      rules: [{ action: 'allow' }],
      errorsAsResults: false,
    })
    const client = await gateway.connectV1('tester')
    const { since } = await gateway.reach('bad', 'connected')
    expect(await call(client, 'bad_forbidden')).toMatchObject({ code: 'server-auth' })
    const { error } = await call(client, 'bad_spoken')
    expect(error).toMatchObject({ code: -32077, data: { why: 'closed' } })
    for (const tool of ['about_another', 'unspoken']) {
      expect(await call(client, `bad_${tool}`)).toMatchObject({ code: 'connect-failed' })
    }
    // A redirect may follow the work, so that nobody knows.
    expect(await call(client, 'bad_moved')).toMatchObject({ code: 'call-unknown' })
    const { code, result } = await call(client, 'bad_busy')
    expect(code).toBe('limit-exceeded')
    expect(toFields(toFields(result._meta)['sallyport/error']).retryAfter).toBe(3600)
    expect(await call(client, 'bad_fine')).toMatchObject({ text: 'fine' })
    expect(gateway.gateway.servers.get(undefined, 'bad')).toMatchObject({ state: 'connected', since })
    for (const tool of Object.keys(refusals)) {
      expect(await statesOf(gateway.gateway, `bad_${tool}`)).toEqual([tool === 'moved' ? 'unknown' : 'failed'])
    }
  })
})

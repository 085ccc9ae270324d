import { once } from 'node:events'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { readRecord, startHttpFixture } from '../../fixtures/fixtures.ts'
import type { HttpModeName } from '../../fixtures/hostile/http-modes.ts'
import { toFields } from '../../fixtures/lib/json-rpc.ts'
import { poll, startTestGateway } from '../../support/gateway.ts'
import { type PlainAnswer, startPlainServer } from './plain-server.ts'
import {
  call,
  operator,
  recordOf,
  type Scene,
  type SceneOptions,
  startSceneWith,
  statesOf,
  temporaryFolder,
} from './support.ts'

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
    told: { read: 'call-timeout', write: 'call-timeout' },
    states: { read: 'timeout', write: 'timeout' },
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
    told: { read: 'connect-failed', write: 'call-unknown' },
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
    const { since } = scene.gateway.getServer('bad')
    for (let round = 0; round < 8; round += 1) {
      expect(await call(scene.client, 'bad_trigger')).toMatchObject({ code: 'connect-failed' })
    }
    expect(scene.gateway.getServer('bad')).toMatchObject({ state: 'connected', since })
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
    await scene.gateway.reconnectServer(operator, 'bad')
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
    })
    const client = await gateway.connectV1('tester')
    const { since } = await gateway.reach('bad', 'connected')
    expect(await call(client, 'bad_forbidden')).toMatchObject({ code: 'server-auth' })
    const { error } = await call(client, 'bad_spoken')
    expect(error).toMatchObject({ code: -32077, data: { why: 'closed' } })
    for (const tool of ['about_another', 'unspoken', 'moved']) {
      expect(await call(client, `bad_${tool}`)).toMatchObject({ code: 'connect-failed' })
    }
    const { code, result } = await call(client, 'bad_busy')
    expect(code).toBe('limit-exceeded')
    expect(toFields(toFields(result._meta)['sallyport/error']).retryAfter).toBe(3600)
    expect(await call(client, 'bad_fine')).toMatchObject({ text: 'fine' })
    expect(gateway.gateway.getServer('bad')).toMatchObject({ state: 'connected', since })
    for (const tool of Object.keys(refusals)) {
      expect(await statesOf(gateway.gateway, `bad_${tool}`)).toEqual(['failed'])
    }
  })
})

describe('a server that answers nothing properly', () => {
  it.each([
    ['html', 'failed', { code: 'server-broken', class: 'protocol' }],
    ['redirect', 'failed', { code: 'connect-failed', class: 'protocol' }],
    ['unauthorized', 'auth-required', { code: 'server-auth', class: 'auth' }],
    ['not-found', 'failed', { code: 'connect-failed', class: 'protocol' }],
  ] as const)('but %s is %s, and hurts nobody else', async (mode, state, error) => {
    await using scene = await startHttpScene(mode)
    const server = await scene.test.reach('bad', state)
    expect(server.error).toMatchObject(error)
    expect(server.error?.hint).not.toBe('')
    await scene.expectOthersWell()
    expect(await call(scene.client, 'bad_ok')).toMatchObject({ code: 'tool-not-found' })
  })

  it.each(['hang', 'reset', 'server-error', 'too-many', 'gzip-bomb', 'huge-chunked', 'endless-event'] as const)(
    'but %s to everything fails, is tried again, and hurts nobody else',
    async (mode) => {
      await using scene = await startHttpScene(mode, ['--on', 'everything'], {
        timeout: { connect: 500 },
        limits: { message: 1_000_000 },
      })
      const server = await scene.test.reach('bad', 'failed')
      expect(server.error?.class).not.toBe('unknown')
      await poll(() => ((scene.gateway.getServer('bad').attempt ?? 0) > 1 ? true : undefined))
      await scene.expectOthersWell()
    },
  )

  it('cannot send the gateway elsewhere: nothing reaches the target of a redirect', async () => {
    let reached = 0
    const target = createServer((_request, response) => {
      reached += 1
      response.end()
    })
    target.on('connection', () => {
      reached += 1
    })
    target.listen(0, '127.0.0.1')
    await once(target, 'listening')
    const address = target.address()
    const port = typeof address === 'object' ? address?.port : 0
    try {
      await using scene = await startHttpScene('redirect', ['--to', `http://127.0.0.1:${port}/mcp?secret=1`])
      const { error } = await scene.test.reach('bad', 'failed')
      expect(error?.message).toContain('redirects are not followed')
      await poll(() => ((scene.gateway.getServer('bad').attempt ?? 0) > 1 ? true : undefined))
      expect(reached).toBe(0)
    } finally {
      target.close()
    }
  })

  it.each(['http', 'sse'] as const)(
    'but takes the connection and says nothing, fails in time over %s',
    async (transport) => {
      const silent = createServer(() => {})
      silent.listen(0, '127.0.0.1')
      await once(silent, 'listening')
      const address = silent.address()
      const port = typeof address === 'object' ? address?.port : 0
      try {
        const bad = { transport, url: `http://127.0.0.1:${port}/mcp`, timeout: { connect: 500 } }
        await using scene = await startSceneWith(bad, { wait: false })
        const { error } = await scene.test.reach('bad', 'failed')
        expect(error).toMatchObject({ code: 'call-timeout', class: 'timeout' })
        await scene.expectOthersWell()
      } finally {
        silent.closeAllConnections()
        silent.close()
      }
    },
  )

  it('because nothing is there is unreachable, and the hint says so', async () => {
    await using scene = await startSceneWith({ transport: 'http', url: 'http://127.0.0.1:9/mcp' })
    const { error } = await scene.test.reach('bad', 'failed')
    expect(error).toMatchObject({ code: 'connect-failed', class: 'unreachable' })
    expect(error?.message).toContain('ECONNREFUSED')
    expect(error?.hint).toContain('Nothing listens')
    await scene.expectOthersWell()
  })

  it('because its name leads nowhere is unreachable', async () => {
    await using scene = await startSceneWith({ transport: 'http', url: 'http://no-such-host.invalid/mcp' })
    const { error } = await scene.test.reach('bad', 'failed')
    expect(error).toMatchObject({ code: 'connect-failed', class: 'unreachable' })
    await scene.expectOthersWell()
  })
})

async function startHttpScene(mode: HttpModeName, args: string[] = [], options: SceneOptions = {}): Promise<Scene> {
  const folder = await temporaryFolder()
  const record = join(folder.path, 'record.jsonl')
  const fixture = await startHttpFixture('hostile-http', [mode, '--record', record, ...args])
  const scene = await startSceneWith(
    { transport: 'http', url: fixture.url, timeout: options.timeout },
    { ...options, record },
  )
  return {
    ...scene,
    async [Symbol.asyncDispose]() {
      await scene[Symbol.asyncDispose]()
      await fixture.stop()
      await folder[Symbol.asyncDispose]()
    },
  }
}

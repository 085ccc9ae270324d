import { describe, expect, it } from 'vitest'
import { fixturePath, readRecord, stdioFixture } from '../../fixtures/fixtures.ts'
import { toFields } from '../../fixtures/lib/json-rpc.ts'
import { acceptTools, poll } from '../../support/gateway.ts'
import {
  call,
  expectGone,
  inlineServer,
  operator,
  recordOf,
  type Scene,
  startScene,
  startSceneWith,
  statesOf,
} from './support.ts'

describe('a program that crashes in the middle of a call', () => {
  it('fails a reading call at once, and comes back by itself', async () => {
    await using scene = await startScene('crash-mid-call')
    const told = await call(scene.client, 'bad_trigger')
    expect(told).toMatchObject({ isError: true, code: 'server-broken' })
    expect(told.text).toContain('server-broken')
    await scene.expectOthersWell()
    const [ended] = await recordOf(scene.gateway, 'bad_trigger')
    expect(ended).toMatchObject({ state: 'failed', error: { code: 'server-broken' } })
    await scene.test.reach('bad', 'connected')
    expect(await call(scene.client, 'bad_ok', { text: 'back' })).toMatchObject({ text: 'back' })
  })

  it('leaves a writing call unknown and never sends it again', async () => {
    await using scene = await startScene('crash-mid-call')
    expect(await call(scene.client, 'bad_trigger_write')).toMatchObject({ isError: true, code: 'call-unknown' })
    await scene.test.reach('bad', 'connected')
    await scene.expectOthersWell()
    expect(await call(scene.client, 'bad_ok', { text: 'back' })).toMatchObject({ text: 'back' })
    expect(await statesOf(scene.gateway, 'bad_trigger_write')).toEqual(['unknown'])
    const sent = (await readRecord(scene.record)).filter(({ name }) => name === 'trigger_write')
    expect(sent).toHaveLength(1)
  })

  it('delivers what it had answered before it ended', async () => {
    await using scene = await startSceneWith(
      inlineServer(`
        function handle({ id, method }) {
          if (method === 'initialize') say({ id, result: greeting })
          else if (method === 'tools/list') say({ id, result: { tools: [tool('last_words')] } })
          else if (method === 'tools/call') {
            const answer = { jsonrpc: '2.0', id, result: text('x'.repeat(100000) + ' the end') }
            process.stdout.write(JSON.stringify(answer) + '\\n', () => process.exit(0))
          } else if (id) say({ id, error: { code: -32601, message: 'Method not found' } })
        }
      `),
      { supervision: { flaps: 1000 } },
    )
    let lastLink: string | undefined
    for (let round = 0; round < 5; round += 1) {
      lastLink = await poll(() => {
        const { state, lastSuccessAt } = scene.gateway.servers.get(undefined, 'bad')
        return state === 'connected' && lastSuccessAt !== lastLink ? lastSuccessAt : undefined
      })
      const told = await call(scene.client, 'bad_last_words')
      expect(told.text.slice(-40)).toContain('the end')
    }
    await scene.expectOthersWell()
  })
})

describe('a program that does not start', () => {
  it('is shown as failed with its exit code, keeps its last words, and is tried again', async () => {
    await using scene = await startScene('crash-at-start')
    const server = await scene.test.reach('bad', 'failed')
    expect(server.error).toMatchObject({ class: 'spawn', message: expect.stringContaining('code 3') })
    expect(server.nextAttemptAt).toBeDefined()
    expect(scene.gateway.servers.logs(undefined, 'bad').lines).toContain('fixture: cannot start, on purpose')
    await poll(() => ((scene.gateway.servers.get(undefined, 'bad').attempt ?? 0) >= 3 ? true : undefined))
    await scene.expectOthersWell()
    expect(await call(scene.client, 'bad_ok')).toMatchObject({ code: 'tool-not-found' })
  })

  it.each([
    ['a command that is not there', { command: '/nowhere/at/all' }],
    ['a command below something that is no folder', { command: '/etc/hostname/program' }],
    ['a command that may not be run', { command: fixturePath('recording') }],
    ['a working folder that is not there', { command: process.execPath, cwd: '/nowhere/at/all' }],
    ['arguments that no system takes', { command: process.execPath, args: ['x'.repeat(3_000_000)] }],
  ])('is named for %s', async (_what, definition) => {
    await using scene = await startSceneWith({ transport: 'stdio', ...definition })
    const { error } = await scene.test.reach('bad', 'failed')
    expect(error).toMatchObject({ code: 'spawn-failed', class: 'spawn' })
    expect(error?.message).toContain(definition.command)
    if ('cwd' in definition) expect(error?.message).toContain(definition.cwd)
    await scene.expectOthersWell()
  })
})

describe('a program that connects and drops again and again', () => {
  it('is stopped after a few times, and its tools are removed from the list', async () => {
    await using scene = await startScene('connect-and-drop')
    await untilStopped(scene)
    const { error, nextAttemptAt } = scene.gateway.servers.get(undefined, 'bad')
    expect(nextAttemptAt).toBeUndefined()
    expect(error?.message).toMatch(/; connection dropped \d+ times; automatic reconnects stopped$/)
    expect(error?.hint).toContain('reconnect')
    await scene.expectOthersWell()
    const { tools } = await scene.client.listTools()
    expect(tools.filter(({ name }) => name.startsWith('bad_'))).toEqual([])
    expect(await call(scene.client, 'bad_ok')).toMatchObject({ code: 'tool-not-found' })
  })

  it('connects again when a person reconnects it', async () => {
    await using scene = await startScene('connect-and-drop')
    await untilStopped(scene)
    const states: string[] = []
    scene.gateway.events.on('server-changed', ({ server }) => {
      if (server.name === 'bad') states.push(server.state)
    })
    expect(await scene.gateway.servers.reconnect(operator, 'bad')).toMatchObject({ name: 'bad' })
    await poll(() => (states.includes('connected') ? true : undefined))
  })

  it('connects again when its configuration changes', async () => {
    await using scene = await startScene('connect-and-drop')
    await untilStopped(scene)
    await scene.test.writeConfig({ servers: { bad: stdioFixture('recording'), good: stdioFixture('recording') } })
    await scene.test.reach('bad', 'connected')
    await acceptTools(scene.test, 'bad')
    expect(await call(scene.client, 'bad_echo', { text: 'mended' })).toMatchObject({ text: 'mended' })
  })
})

describe('what a program prints on stderr', () => {
  it('is kept within a bound, however much it is', async () => {
    await using scene = await startScene('stderr-flood')
    const before = process.memoryUsage().rss
    expect(await call(scene.client, 'bad_trigger')).toMatchObject({ text: 'flooded' })
    const { lines, dropped } = scene.gateway.servers.logs(undefined, 'bad')
    expect(Buffer.byteLength(lines.join('\n'))).toBeLessThanOrEqual(256 * 1024)
    expect(lines.at(-1)).toContain('stderr flood')
    expect(dropped).toBeGreaterThan(0)
    expect(process.memoryUsage().rss - before).toBeLessThan(200_000_000)
    await scene.expectOthersWell()
    expect(await statesOf(scene.gateway, 'bad_trigger')).toEqual(['ok'])
  })

  it('may be millions of the shortest lines without hurting anybody', async () => {
    const flood = `const lines = '\\n'.repeat(60_000) + 'a\\n'
      const pour = () => process.stderr.write(lines, pour)
      pour()
      setTimeout(() => process.exit(0), 60_000)
      process.stdin.on('end', () => process.exit(0)).resume()`
    await using scene = await startSceneWith(
      { transport: 'stdio', command: process.execPath, args: ['-e', flood] },
      { wait: false },
    )
    await scene.expectOthersWell()
    await poll(() => (scene.gateway.servers.logs(undefined, 'bad').dropped > 1_000_000 ? true : undefined), 30_000)
    const { lines } = scene.gateway.servers.logs(undefined, 'bad')
    expect(lines.length).toBeLessThanOrEqual(256 * 1024)
    await scene.expectOthersWell()
  })

  it('is shown without its escape sequences', async () => {
    await using scene = await startScene('stderr-secrets')
    expect(await call(scene.client, 'bad_trigger')).toMatchObject({ text: 'leaked' })
    const { lines } = await poll(() => {
      const logs = scene.gateway.servers.logs(undefined, 'bad')
      return logs.lines.length > 1 ? logs : undefined
    })
    expect(lines[0]).toBe('Authorization: Bearer canary-secret-of-the-fixture')
  })

  it('cannot hide an escape sequence within another, or behind control characters', async () => {
    const talk = `process.stderr.write('\\x1b\\x1b[31m[31mnested\\x07\\rover\\u202e\\n')
      process.stdin.on('end', () => process.exit(0)).resume()`
    await using scene = await startSceneWith(
      { transport: 'stdio', command: process.execPath, args: ['-e', talk] },
      { wait: false },
    )
    const [line] = await poll(() => {
      const { lines } = scene.gateway.servers.logs(undefined, 'bad')
      return lines.length > 0 ? lines : undefined
    })
    expect(line).toMatch(/^[\x20-\x7e]+$/)
    expect(line).toContain('nested')
  })
})

describe('a program that stops reading', () => {
  it('fails each call at its deadline, within a bound of bytes, and delays nobody else', async () => {
    await using scene = await startScene('stop-reading', { timeout: { call: 500 } })
    await poll(async () => ((await call(scene.client, 'bad_ok')).code === 'call-timeout' ? true : undefined))
    const before = process.memoryUsage().rss
    const large = 'x'.repeat(1_000_000)
    const calls = Array.from({ length: 40 }, () => call(scene.client, 'bad_ok', { text: large }))
    await scene.expectOthersWell()
    for (const told of await Promise.all(calls)) {
      expect(told.isError).toBe(true)
      expect(['call-timeout', 'server-broken']).toContain(told.code)
    }
    expect(process.memoryUsage().rss - before).toBeLessThan(400_000_000)
    const states = (await statesOf(scene.gateway, 'bad_ok', 41)).slice(-40)
    expect(states.filter((state) => state !== 'timeout' && state !== 'failed')).toEqual([])
    await scene.expectOthersWell()
  })

  it('does not let dead calls keep the queue full', async () => {
    await using scene = await startScene('stop-reading', { timeout: { call: 300 } })
    await poll(async () => ((await call(scene.client, 'bad_ok')).code === 'call-timeout' ? true : undefined))
    const large = 'x'.repeat(4_000_000)
    const first = await Promise.all(Array.from({ length: 8 }, () => call(scene.client, 'bad_ok', { text: large })))
    expect(first.some(({ code }) => code === 'call-timeout')).toBe(true)
    expect(await call(scene.client, 'bad_ok', { text: large })).toMatchObject({ code: 'call-timeout' })
  })
})

describe('a program that does not want to end', () => {
  it('is gone with its grandchildren when its server is removed', async () => {
    await using scene = await startScene('grandchildren')
    const pids = await pidsOf(scene)
    await scene.gateway.servers.remove(operator, 'bad')
    await expectGone(...pids)
    await scene.expectOthersWell()
  })

  it('is gone with its grandchildren when its server is switched off or replaced', async () => {
    await using scene = await startScene('grandchildren')
    const first = await pidsOf(scene)
    await scene.gateway.servers.enable(operator, 'bad', false)
    await expectGone(...first)
    await scene.gateway.servers.enable(operator, 'bad', true)
    await scene.test.reach('bad', 'connected')
    const second = await pidsOf(scene)
    await scene.test.writeConfig({ servers: { bad: stdioFixture('recording'), good: stdioFixture('recording') } })
    await expectGone(...second)
    await scene.test.reach('bad', 'connected')
    await scene.expectOthersWell()
  })

  it('is gone with its grandchildren when the gateway has closed', async () => {
    const scene = await startScene('grandchildren')
    const pids = await pidsOf(scene)
    await scene[Symbol.asyncDispose]()
    await expectGone(...pids)
  })

  it('is ended for good though it ignores the end of its input and SIGTERM', async () => {
    const scene = await startScene('exit-on-stdin-close-ignored')
    expect(await call(scene.client, 'bad_ok', { text: 'here' })).toMatchObject({ text: 'here' })
    const [{ pid } = { pid: 0 }] = await readRecord(scene.record)
    await scene[Symbol.asyncDispose]()
    await expectGone(pid)
  })
})

async function untilStopped(scene: Scene): Promise<void> {
  await poll(() => {
    const { state, nextAttemptAt } = scene.gateway.servers.get(undefined, 'bad')
    return state === 'failed' && nextAttemptAt === undefined ? true : undefined
  }, 30_000)
}

async function pidsOf(scene: Scene): Promise<number[]> {
  const { text } = await call(scene.client, 'bad_pids')
  const { child, grandchild } = toFields(JSON.parse(text))
  return [Number(child), Number(grandchild)]
}

import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { fixturePath, readCancellations, readRecord } from '../../fixtures/fixtures.ts'
import { poll } from '../../support/gateway.ts'
import {
  call,
  inlineServer,
  recordOf,
  type Scene,
  startScene,
  startSceneWith,
  statesOf,
  temporaryFolder,
} from './support.ts'

describe('a server that never answers', () => {
  it.each([
    ['bad_trigger', 'call-timeout', 'timeout'],
    ['bad_trigger_write', 'call-unknown', 'unknown'],
  ])('ends %s at its deadline with %s and is told that nobody waits', async (tool, code, state) => {
    await using scene = await startScene('never-answer', { timeout: { call: 300 } })
    const waiting = call(scene.client, tool)
    await scene.expectOthersWell()
    const told = await waiting
    expect(told).toMatchObject({ isError: true, code })
    expect(told.text).toMatch(new RegExp(`${code}.*No answer within 300 ms`))
    expect(await statesOf(scene.gateway, tool)).toEqual([state])
    await expectCancelled(scene)
    expect(await call(scene.client, 'bad_ok', { text: 'still here' })).toMatchObject({ text: 'still here' })
  })

  it('is told when the caller cancels, and the record says so', async () => {
    await using scene = await startScene('never-answer')
    const controller = new AbortController()
    const waiting = call(scene.client, 'bad_trigger', {}, { signal: controller.signal }).catch(() => undefined)
    await poll(async () => ((await readRecord(scene.record)).length > 0 ? true : undefined))
    controller.abort()
    await waiting
    expect(await statesOf(scene.gateway, 'bad_trigger')).toEqual(['cancelled'])
    await expectCancelled(scene)
    await scene.expectOthersWell()
  })

  it('is held to the maximum also where that is shorter than the time without progress', async () => {
    await using scene = await startScene('never-answer', { timeout: { call: 600_000, maximum: 300 } })
    expect(await call(scene.client, 'bad_trigger')).toMatchObject({ code: 'call-timeout' })
  })

  it('fails to connect when it is `initialize` that stays unanswered', async () => {
    await using scene = await startScene('never-answer-initialize', { timeout: { connect: 500 } })
    const server = await scene.test.reach('bad', 'failed')
    expect(server.error).toMatchObject({ code: 'call-timeout', class: 'timeout' })
    expect(server.error?.hint).toContain('timeout.connect')
    expect(server.nextAttemptAt).toBeDefined()
    await scene.expectOthersWell()
  })
})

describe('a server that reports progress for ever', () => {
  it('is given the maximum and not a moment more', async () => {
    await using scene = await startScene('progress-forever', { timeout: { call: 1000, maximum: 3000 } })
    let heard = 0
    const onprogress = () => {
      heard += 1
    }
    const waiting = call(scene.client, 'bad_trigger', {}, { onprogress, resetTimeoutOnProgress: true })
    await scene.expectOthersWell()
    expect(await waiting).toMatchObject({ isError: true, code: 'call-timeout' })
    // Far more than fits into the time without progress: it was prolonged, and then it was not.
    expect(heard).toBeGreaterThan(22)
    expect(await statesOf(scene.gateway, 'bad_trigger')).toEqual(['timeout'])
    await expectCancelled(scene)
  })

  it('is not heard by a caller who did not ask for progress', async () => {
    await using scene = await startScene('progress-forever', { timeout: { call: 300, maximum: 600_000 } })
    expect(await call(scene.client, 'bad_trigger')).toMatchObject({ code: 'call-timeout' })
  })
})

describe('an answer that comes after nobody waits any more', () => {
  it.each([
    ['bad_trigger', 'call-timeout', 'timeout'],
    ['bad_trigger_write', 'call-unknown', 'unknown'],
  ])('is dropped, and the record of %s says that it came', async (tool, code, state) => {
    await using scene = await startScene('answer-after-cancel', { timeout: { call: 300 } })
    const told = await call(scene.client, tool)
    expect(told).toMatchObject({ isError: true, code })
    await expectLate(scene, tool)
    expect(await statesOf(scene.gateway, tool)).toEqual([state])
    expect(await call(scene.client, 'bad_ok', { text: 'mine' })).toMatchObject({ text: 'mine' })
    await scene.expectOthersWell()
  })

  it('is dropped when it was the caller who cancelled', async () => {
    await using scene = await startScene('answer-after-cancel')
    const controller = new AbortController()
    const waiting = call(scene.client, 'bad_trigger', {}, { signal: controller.signal }).catch(() => undefined)
    await poll(async () => ((await readRecord(scene.record)).length > 0 ? true : undefined))
    controller.abort()
    await waiting
    await expectLate(scene, 'bad_trigger')
    expect(await statesOf(scene.gateway, 'bad_trigger')).toEqual(['cancelled'])
  })
})

describe('answers that belong to no call', () => {
  it('under wrong ids, in another form or without one are never taken for the right one', async () => {
    await using scene = await startScene('wrong-ids')
    const calls = Array.from({ length: 10 }, () => call(scene.client, 'bad_trigger'))
    for (const told of await Promise.all(calls)) expect(told).toMatchObject({ text: 'right answer', isError: false })
    await scene.expectOthersWell()
    expect(new Set(await statesOf(scene.gateway, 'bad_trigger', 10))).toEqual(new Set(['ok']))
  })

  it('under the id of a call that was answered already are dropped', async () => {
    await using scene = await startScene('duplicate-ids')
    for (let round = 0; round < 5; round += 1) {
      expect(await call(scene.client, 'bad_trigger')).toMatchObject({ text: 'first answer' })
      expect(await call(scene.client, 'bad_ok', { text: `own ${round}` })).toMatchObject({ text: `own ${round}` })
    }
    const records = await recordOf(scene.gateway, 'bad_trigger', 5)
    expect(records.map(({ state, late }) => ({ state, late }))).toEqual(
      Array.from({ length: 5 }, () => ({ state: 'ok', late: undefined })),
    )
  })

  it('that are neither a result nor an error, or both, fail nothing but themselves', async () => {
    await using scene = await startSceneWith({
      ...inlineServer(`
        const odd = {
          both: (id) => ({ id, result: text('b'), error: { code: 1, message: 'b' } }),
          neither: (id) => ({ id }),
          number: (id) => ({ id, result: 42 }),
          list: (id) => ({ id, result: [] }),
        }
        function handle({ id, method, params }) {
          if (method === 'initialize') say({ id, result: greeting })
          else if (method === 'tools/list') say({ id, result: { tools: [...Object.keys(odd), 'fine'].map(tool) } })
          else if (method === 'tools/call') say(odd[params.name]?.(id) ?? { id, result: text('fine') })
          else if (id) say({ id, error: { code: -32601, message: 'Method not found' } })
        }
      `),
      timeout: { call: 500 },
    })
    for (const tool of ['both', 'neither', 'number', 'list']) {
      const told = await call(scene.client, `bad_${tool}`)
      expect(told).toMatchObject({ isError: true })
      expect(['server-broken', 'call-timeout']).toContain(told.code)
      expect(await call(scene.client, 'bad_fine')).toMatchObject({ text: 'fine' })
    }
  })
})

describe('what a server says besides', () => {
  it('as an error is passed on with its code, its message and its data', async () => {
    await using scene = await startScene('error-result')
    const { error } = await call(scene.client, 'bad_trigger')
    expect(error?.code).toBe(-32000)
    expect(error?.message).toContain('The fixture failed on purpose')
    expect(error?.data).toEqual({ reason: 'on purpose', retryable: false })
    const [ended] = await recordOf(scene.gateway, 'bad_trigger')
    expect(ended).toMatchObject({ state: 'failed', error: { code: 'server-refused' } })
    await scene.expectOthersWell()
  })

  it('as a request is answered: a ping with a pong, anything unknown with its refusal', async () => {
    await using scene = await startScene('unknown-requests')
    const answers = JSON.parse((await call(scene.client, 'bad_trigger')).text)
    expect(answers.ping).toMatchObject({ result: {} })
    for (const method of ['roots/list', 'sampling/createMessage', 'made/up']) {
      expect(answers[method]).toMatchObject({ error: { code: -32601 } })
    }
  })
})

describe('a server that never stops talking', () => {
  it('about what nobody asked for still gets its calls answered, and delays no other', async () => {
    await using scene = await startSceneWith(
      inlineServer(`
        const notice = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/message', params: { data: 'x' } }) + '\\n'
        const chunk = notice.repeat(500)
        const pour = () => process.stdout.write(chunk, () => setImmediate(pour))
        function handle({ id, method }) {
          if (method === 'initialize') say({ id, result: greeting })
          else if (method === 'tools/list') say({ id, result: { tools: [tool('fine')] } })
          else if (method === 'notifications/initialized') pour()
          else if (method === 'tools/call') say({ id, result: text('fine') })
          else if (id) say({ id, error: { code: -32601, message: 'Method not found' } })
        }
      `),
    )
    await scene.test.reach('bad', 'connected')
    for (let round = 0; round < 5; round += 1) {
      expect(await call(scene.client, 'bad_fine')).toMatchObject({ text: 'fine' })
      await scene.expectOthersWell()
    }
  })
})

describe('a server that greets badly', () => {
  it('by taking its time delays neither the start nor the others', async () => {
    await using scene = await startScene('slow-start', { wait: false })
    await scene.expectOthersWell()
    expect(scene.gateway.servers.get(undefined, 'bad').state).toBe('connecting')
    await poll(() => (scene.gateway.servers.get(undefined, 'bad').progress?.includes('starting') ? true : undefined))
    await scene.test.reach('bad', 'connected')
    expect(await call(scene.client, 'bad_ok', { text: 'at last' })).toMatchObject({ text: 'at last' })
  })

  it('may take long the first time if its command may have to download it, and says so', async () => {
    await using folder = await temporaryFolder()
    const npx = join(folder.path, 'npx')
    await writeFile(npx, `#!/bin/sh\nsleep 2\nexec ${process.execPath} ${fixturePath('recording')}\n`, { mode: 0o755 })
    const timeout = { connect: 1000, start: 30_000 }
    await using scene = await startSceneWith({ transport: 'stdio', command: npx, timeout }, { wait: false })
    await poll(() => (scene.gateway.servers.get(undefined, 'bad').progress?.includes('downloading') ? true : undefined))
    await scene.test.reach('bad', 'connected')
    expect(scene.gateway.servers.get(undefined, 'bad')).not.toHaveProperty('progress')
  })

  it.each(['bad-initialize', 'unsupported-version'] as const)('with %s is shown as failed', async (mode) => {
    await using scene = await startScene(mode)
    const server = await scene.test.reach('bad', 'failed')
    expect(server.error).toMatchObject({ code: 'server-broken', class: 'protocol' })
    expect(server.error?.message).toContain('revision')
    await scene.expectOthersWell()
  })

  it('by ending itself over a question it does not know is asked in the older era, and stays connected', async () => {
    await using folder = await temporaryFolder()
    const starts = join(folder.path, 'starts')
    await using scene = await startSceneWith(
      inlineServer(`
        require('node:fs').appendFileSync(${JSON.stringify(starts)}, 'started\\n')
        function handle({ id, method, params }) {
          if (method === 'server/discover') process.exit(7)
          if (method === 'initialize') say({ id, result: greeting })
          else if (method === 'tools/list') say({ id, result: { tools: [tool('fine')] } })
          else if (id) say({ id, result: text('fine') })
        }
      `),
    )
    await scene.test.reach('bad', 'connected')
    for (let round = 0; round < 5; round += 1) {
      expect(await call(scene.client, 'bad_fine')).toMatchObject({ text: 'fine' })
      await scene.expectOthersWell()
    }
    expect(await readFile(starts, 'utf8')).toBe('started\n'.repeat(2))
  })
})

async function expectCancelled(scene: Scene): Promise<void> {
  const [cancelled] = await poll(async () => {
    const found = await readCancellations(scene.record)
    return found.length > 0 ? found : undefined
  })
  const [called] = await readRecord(scene.record)
  expect(cancelled?.cancelled).toBe(called?.id)
}

async function expectLate(scene: Scene, tool: string): Promise<void> {
  await poll(async () => ((await recordOf(scene.gateway, tool))[0]?.late ? true : undefined))
}

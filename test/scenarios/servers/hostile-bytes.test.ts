import { describe, expect, it } from 'vitest'
import { readRecord, stdioFixture } from '../../fixtures/fixtures.ts'
import { startTestGateway } from '../../support/gateway.ts'
import { call, inlineServer, recordOf, startScene, startSceneWith, statesOf, temporaryFolder } from './support.ts'

describe('noise between the messages', () => {
  it('is skipped, and every call gets its answer', async () => {
    await using scene = await startScene('noise')
    const calls = Array.from({ length: 5 }, () => call(scene.client, 'bad_trigger'))
    for (const told of await Promise.all(calls)) expect(told).toMatchObject({ text: 'right answer', isError: false })
    await scene.expectOthersWell()
  })

  it('is not mistaken for the greeting by a gateway that remembers the server', async () => {
    await using folder = await temporaryFolder()
    const config = { servers: { bad: stdioFixture('hostile', ['noise']) } }
    for (let start = 0; start < 2; start += 1) {
      await using gateway = await startTestGateway(config, { folder: folder.path })
      const server = await gateway.reach('bad', 'connected')
      expect(server.attempt).toBeUndefined()
      expect(server.error).toBeUndefined()
      expect(gateway.gateway.servers.logs(undefined, 'bad').lines).toEqual([])
    }
  })
})

describe('a result that is too much', () => {
  it('is cut visibly, with the whole size told, when it is long', async () => {
    await using scene = await startScene('huge-result', { limits: { result: 10_000, message: 67_108_864 } })
    const { text, isError } = await call(scene.client, 'bad_trigger')
    expect(isError).toBe(false)
    expect(text.length).toBeLessThan(11_000)
    expect(text).toContain('[cut by Sallyport: 10000 of 50000000 characters]')
    await scene.expectOthersWell()
    expect(await statesOf(scene.gateway, 'bad_trigger')).toEqual(['ok'])
  })

  it('is an error of that call alone when it is nested too deep', async () => {
    await using scene = await startScene('deep-result')
    const told = await call(scene.client, 'bad_trigger')
    expect(told).toMatchObject({ isError: true, code: 'server-broken' })
    expect(told.text).toContain('nested too deep')
    const { since } = scene.gateway.servers.get(undefined, 'bad')
    expect(await call(scene.client, 'bad_ok', { text: 'fine' })).toMatchObject({ text: 'fine' })
    expect(scene.gateway.servers.get(undefined, 'bad').since).toBe(since)
    expect(await statesOf(scene.gateway, 'bad_trigger')).toEqual(['failed'])
    expect(await call(scene.client, 'bad_trigger_write')).toMatchObject({ code: 'call-unknown' })
    expect(await statesOf(scene.gateway, 'bad_trigger_write')).toEqual(['unknown'])
    await scene.expectOthersWell()
  })
})

describe('a line over the limit', () => {
  it('that belongs to nobody is let go, and the answer behind it arrives', async () => {
    await using scene = await startScene('long-line')
    const waiting = call(scene.client, 'bad_trigger')
    await scene.expectOthersWell()
    expect(await waiting).toMatchObject({ text: 'after the long line', isError: false })
  })

  it('that has no end ends its connection with the reason, and takes no memory', async () => {
    await using scene = await startScene('endless-line')
    const before = process.memoryUsage().rss
    const lost = new Promise<string | undefined>((resolve) => {
      scene.gateway.events.on('server-changed', ({ server }) => {
        if (server.name === 'bad' && server.error) resolve(server.error.message)
      })
    })
    expect(await call(scene.client, 'bad_trigger')).toMatchObject({ isError: true, code: 'server-broken' })
    expect(await lost).toContain('wrote a line that is far longer than the limit')
    // All that such a program writes would be gigabytes.
    expect(process.memoryUsage().rss - before).toBeLessThan(100_000_000)
    await scene.expectOthersWell()
    await scene.test.reach('bad', 'connected')
    expect(await call(scene.client, 'bad_ok', { text: 'again' })).toMatchObject({ text: 'again' })
  })

  it('fails the call it answers and nothing else', async () => {
    await using folder = await temporaryFolder()
    const record = `${folder.path}/record.jsonl`
    await using scene = await startSceneWith(stdioFixture('recording', ['--record', record]), {
      limits: { message: 65_536 },
    })
    const slow = call(scene.client, 'bad_echo', { text: 'meanwhile', delayMs: 500 })
    const told = await call(scene.client, 'bad_big', { bytes: 200_000 })
    expect(told).toMatchObject({ isError: true, code: 'result-too-large' })
    expect(await slow).toMatchObject({ text: 'meanwhile' })
    expect(await call(scene.client, 'bad_echo', { text: 'after' })).toMatchObject({ text: 'after' })
    expect(new Set((await readRecord(record)).map(({ pid }) => pid)).size).toBe(1)
    const [ended] = await recordOf(scene.gateway, 'bad_big')
    expect(ended).toMatchObject({ state: 'failed', error: { code: 'result-too-large' } })
    await scene.expectOthersWell()
  })

  it.each([
    ['first', '{"id":ID,"jsonrpc":"2.0","result":{"content":[{"type":"text","text":"TEXT"}]}}'],
    ['last', '{"jsonrpc":"2.0","result":{"content":[{"type":"text","text":"TEXT"}]},"id":ID}'],
    ['in the middle', '{ "jsonrpc" : "2.0" , "id" : ID , "result":{"content":[{"type":"text","text":"TEXT"}]}}'],
  ])('is known by its id when that stands %s', async (_where, template) => {
    await using scene = await startSceneWith(
      inlineServer(`
        const template = ${JSON.stringify(template)}
        function handle({ id, method }) {
          if (method === 'initialize') say({ id, result: greeting })
          else if (method === 'tools/list') say({ id, result: { tools: [tool('large')] } })
          else if (method === 'tools/call')
            process.stdout.write(template.replace('ID', id).replace('TEXT', 'x'.repeat(100000)) + '\\n')
          else if (id) say({ id, error: { code: -32601, message: 'Method not found' } })
        }
      `),
      { limits: { message: 65_536 } },
    )
    expect(await call(scene.client, 'bad_large')).toMatchObject({ isError: true, code: 'result-too-large' })
  })
})

describe('text in pieces', () => {
  it('is put together again, character by character', async () => {
    await using scene = await startScene('split-utf8')
    expect(await call(scene.client, 'bad_trigger')).toMatchObject({ text: 'Příliš žluťoučký kůň 漢字 👩‍🚀' })
    await scene.expectOthersWell()
  })
})

describe('bytes that are not what they pretend to be', () => {
  const odd = {
    control: '"a\\u0001b"',
    carriage: '"a\\rb"',
    escape: '"a\\\\x41b"',
    surrogate: '"a\\\\ud83db"',
    zero: '01',
    half: '"a\\\\u12"',
  }

  it('reach a caller only as JSON that everybody can read', async () => {
    await using scene = await startSceneWith({
      ...inlineServer(`
        const odd = { ${Object.entries(odd)
          .map(([name, text]) => `${name}: '${text}'`)
          .join(', ')} }
        function handle({ id, method, params }) {
          if (method === 'initialize') say({ id, result: greeting })
          else if (method === 'tools/list') say({ id, result: { tools: [...Object.keys(odd), 'utf8', 'fine'].map(tool) } })
          else if (method === 'tools/call' && params.name === 'utf8') {
            const [head, tail] = JSON.stringify({ jsonrpc: '2.0', id, result: text('aTEXTb') }).split('TEXT')
            process.stdout.write(Buffer.concat([Buffer.from(head), Buffer.of(0xff, 0xc3), Buffer.from(tail + '\\n')]))
          } else if (method === 'tools/call' && odd[params.name])
            process.stdout.write('{"jsonrpc":"2.0","id":' + id + ',"result":{"content":[{"type":"text","text":' + odd[params.name] + '}]}}\\n')
          else if (method === 'tools/call') say({ id, result: text('fine') })
          else if (id) say({ id, error: { code: -32601, message: 'Method not found' } })
        }
      `),
      timeout: { call: 1000 },
    })
    for (const name of ['control', 'carriage', 'escape', 'zero', 'half']) {
      const onprogress = () => {}
      for (const options of [undefined, { onprogress }]) {
        const told = await call(scene.client, `bad_${name}`, {}, options)
        expect(told, name).toMatchObject({ isError: true })
        expect(['server-broken', 'call-timeout']).toContain(told.code)
        expect(await call(scene.client, 'bad_fine')).toMatchObject({ text: 'fine' })
      }
    }
    expect((await call(scene.client, 'bad_surrogate')).text).toHaveLength(3)
    expect((await call(scene.client, 'bad_utf8')).text).toBe('a\ufffd\ufffdb')
    await scene.expectOthersWell()
  })
})

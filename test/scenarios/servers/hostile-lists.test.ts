import { describe, expect, it } from 'vitest'
import type { ServerDetail } from '../../../src/contract/server.ts'
import { stdioFixture } from '../../fixtures/fixtures.ts'
import { poll } from '../../support/gateway.ts'
import { call, inlineServer, startScene, startSceneWith } from './support.ts'

describe('a list of tools', () => {
  it.each([
    ['endless-cursors', false, 1000],
    ['same-cursor', false, 1],
    ['alternating-cursors', false, 2],
    ['empty-cursor', true, 2],
  ] as const)('with %s ends, and is called complete: %s', async (mode, complete, count) => {
    await using scene = await startScene(mode)
    await scene.test.reach('bad', 'connected')
    const server = scene.gateway.servers.get(undefined, 'bad')
    expect(server.complete).toBe(complete)
    expect(server.tools).toHaveLength(count)
    expect(await call(scene.client, 'bad_ok', { text: 'works' })).toMatchObject({ text: 'works' })
    await scene.expectOthersWell()
  })

  it('of one page that holds more than the limit is cut and called incomplete', async () => {
    await using scene = await startSceneWith(stdioFixture('recording', ['--tools', '50']), { limits: { tools: 20 } })
    const server = scene.gateway.servers.get(undefined, 'bad')
    expect(server.tools).toHaveLength(20)
    expect(server.complete).toBe(false)
  })

  it('of exactly as many tools as the limit is complete', async () => {
    const { length } = await ownTools()
    await using scene = await startSceneWith(stdioFixture('recording', ['--page', '4']), { limits: { tools: length } })
    expect(scene.gateway.servers.get(undefined, 'bad')).toMatchObject({ complete: true })
    expect(scene.gateway.servers.get(undefined, 'bad').tools).toHaveLength(length)
  })

  it('of ten thousand tools on many pages is complete, and delays nobody', async () => {
    const many = stdioFixture('recording', ['--tools', '10000', '--page', '500'])
    await using scene = await startSceneWith(many, { wait: false })
    await scene.expectOthersWell()
    await scene.test.reach('bad', 'connected')
    expect(scene.gateway.servers.get(undefined, 'bad')).toMatchObject({ complete: true })
    expect(await call(scene.client, 'bad_tool_9999', { a: 1 })).toMatchObject({ text: '{"a":1}' })
    await scene.expectOthersWell()
  })

  it('with a cursor that is no text is called incomplete', async () => {
    await using scene = await startSceneWith(
      inlineServer(`
        function handle({ id, method }) {
          if (method === 'initialize') say({ id, result: greeting })
          else if (method === 'tools/list') say({ id, result: { tools: [tool('first')], nextCursor: 2 } })
          else if (id) say({ id, result: text('fine') })
        }
      `),
    )
    await scene.test.reach('bad', 'connected')
    expect(scene.gateway.servers.get(undefined, 'bad').complete).toBe(false)
  })

  it('whose pages come ever more slowly is cut at the time for connecting', async () => {
    await using scene = await startSceneWith({
      ...inlineServer(`
        let page = 0
        function handle({ id, method }) {
          if (method === 'initialize') say({ id, result: greeting })
          else if (method === 'tools/list')
            setTimeout(() => say({ id, result: { tools: [tool('page_' + ++page)], nextCursor: String(page) } }), 300)
          else if (id) say({ id, result: text('fine') })
        }
      `),
      timeout: { connect: 1500 },
    })
    await scene.test.reach('bad', 'connected')
    const server = scene.gateway.servers.get(undefined, 'bad')
    expect(server.complete).toBe(false)
    expect(server.tools.length).toBeGreaterThan(0)
    expect(await call(scene.client, 'bad_page_1')).toMatchObject({ text: 'fine' })
  })

  it('that is no list leaves the server failed and the others alone', async () => {
    await using scene = await startSceneWith(
      inlineServer(`
        function handle({ id, method }) {
          if (method === 'initialize') say({ id, result: greeting })
          else if (id) say({ id, result: { tools: 'none' } })
        }
      `),
    )
    expect((await scene.test.reach('bad', 'failed')).error).toMatchObject({ class: 'protocol' })
    await scene.expectOthersWell()
  })
})

describe('the names of tools', () => {
  it('that can be used are offered, the others are set aside with a reason and shown escaped', async () => {
    await using scene = await startScene('ugly-names')
    const server = scene.gateway.servers.get(undefined, 'bad')
    expect(server.tools.map(({ original }) => original).sort()).toEqual([
      'dotted.name.',
      'ok',
      'path/../name',
      'with spaces',
    ])
    expect(server.setAside).toHaveLength(10)
    for (const { name, reason } of server.setAside) {
      expect(name).toMatch(/^[\x20-\x7e]+$/)
      expect(reason).not.toBe('')
    }
    const shown = server.setAside.map(({ name }) => name)
    expect(shown).toEqual(expect.arrayContaining(['zero\\u{200b}width', 'right\\u{202e}left', 're\\u{430}d', 'ok']))
    for (const { name } of server.tools) expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/)
    await scene.expectOthersWell()
  })

  it('reach the server as it wrote them', async () => {
    await using scene = await startScene('ugly-names')
    const { tools } = scene.gateway.servers.get(undefined, 'bad')
    for (const { name, original } of tools.filter(({ original }) => original !== 'ok')) {
      const { error } = await call(scene.client, name)
      expect(error?.message).toContain(`Unknown tool: ${original}`)
    }
  })
})

describe('the schemas of tools', () => {
  it('that merely lack something are mended and marked', async () => {
    await using scene = await startScene('bad-schemas')
    const server = scene.gateway.servers.get(undefined, 'bad')
    expect(mendedOf(server, 'no_type')).toContain('type: object was added')
    for (const name of ['missing_schema', 'array_schema', 'boolean_schema', 'redos']) {
      expect(mendedOf(server, name), name).not.toBe('')
    }
    expect(mendedOf(server, 'ok')).toBe('')
    expect(JSON.stringify(server.tools)).not.toContain('(a+)+')
    for (const tool of server.tools) expect(tool.inputSchema).toMatchObject({ type: 'object' })
  })

  it('that are dangerous or too large take their tool out, and only that', async () => {
    await using scene = await startScene('bad-schemas')
    const server = scene.gateway.servers.get(undefined, 'bad')
    const aside = server.setAside.map(({ name }) => name)
    expect(aside).toEqual(expect.arrayContaining(['deep_schema', 'huge_schema', 'remote_ref', 'cyclic_ref', '(none)']))
    const offered = server.tools.map(({ original }) => original)
    expect(offered.filter((name) => aside.includes(name))).toEqual([])
    expect(offered).toEqual(expect.arrayContaining(['ok', 'no_type']))
    expect(await call(scene.client, 'bad_ok', { text: 'works' })).toMatchObject({ text: 'works' })
    expect('polluted' in {}).toBe(false)
    await scene.expectOthersWell()
    const { tools } = await scene.client.listTools()
    expect(tools.filter(({ name }) => name.startsWith('bad_'))).toHaveLength(offered.length)
  })
})

describe('a storm of list changes', () => {
  it('is answered by a few lists, while calls go on', async () => {
    await using scene = await startScene('list-change-storm', { supervision: { refreshMs: 200 } })
    const lists = async () => Number((await call(scene.client, 'bad_lists')).text)
    await poll(async () => ((await lists()) > 1 ? true : undefined))
    await scene.expectOthersWell()
    let last = 0
    await poll(async () => {
      const before = last
      await new Promise((resolve) => setTimeout(resolve, 600))
      last = await lists()
      return before === last ? true : undefined
    })
    expect(last).toBeGreaterThan(1)
    expect(last).toBeLessThan(30)
  })
})

function mendedOf(server: ServerDetail, original: string): string {
  const found = server.tools.find((tool) => tool.original === original)
  expect(found, original).toBeDefined()
  return found?.mended ?? ''
}

async function ownTools(): Promise<unknown[]> {
  await using scene = await startSceneWith(stdioFixture('recording'))
  return scene.gateway.servers.get(undefined, 'bad').tools
}

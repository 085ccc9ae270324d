import { describe, expect, it } from 'vitest'
import { readRecord } from '../../fixtures/fixtures.ts'
import { toFields } from '../../fixtures/lib/json-rpc.ts'
import { type ConfigInput, poll, startTestGateway, type TestGateway } from '../../support/gateway.ts'
import {
  allowAll,
  ask,
  namesIn,
  openSession,
  ownTools,
  type Reply,
  recordedCalls,
  recordingAt,
  temporaryFolder,
  textOf,
} from './raw.ts'

/** The gateway's own, where everything else is a server's. */

async function startWith(folder: string, config: (server: ReturnType<typeof recordingAt>['server']) => ConfigInput) {
  const { file, server } = recordingAt(folder)
  const gateway = await startTestGateway({ rules: allowAll, ...config(server) })
  return { file, gateway }
}

/** By name, in both eras, at every address that could lead there. */
async function tryEverywhere(
  gateway: TestGateway,
  tries: readonly { path: string; name: string }[],
  agent = 'agent',
): Promise<Reply[]> {
  const replies: Reply[] = []
  for (const { path, name } of tries) {
    replies.push(await ask(gateway, 'tools/call', { name, arguments: { by: 'name' } }, { agent, path }))
    const session = await openSession(gateway, { agent, path })
    if (session.initialized.status === 200) replies.push(await session.call(name, { by: 'name' }))
  }
  return replies
}

async function expectAllDenied(gateway: TestGateway, file: string, replies: readonly Reply[]): Promise<void> {
  for (const reply of replies) {
    expect(reply.error, reply.text).toMatchObject({ code: -32602 })
    expect(reply.result, reply.text).toEqual({})
  }
  expect(await readRecord(file)).toEqual([])
  const calls = await recordedCalls(gateway)
  expect(calls).toHaveLength(replies.length)
  expect(new Set(calls.map(({ state }) => state))).toEqual(new Set(['denied']))
}

describe('the three kinds of addresses', () => {
  it('offer everything under public names, a toolset with its choice, and one server under its own names', async () => {
    await using folder = await temporaryFolder()
    const one = recordingAt(folder.path, 'one')
    const two = recordingAt(folder.path, 'two')
    await using gateway = await startTestGateway({
      servers: { one: one.server, two: two.server },
      toolsets: {
        small: { servers: ['one'], tools: ['one_echo', 'one_fail', 'two_echo'] },
        wide: { tools: ['*_echo'] },
      },
    })
    const list = async (path: string) => namesIn((await ask(gateway, 'tools/list', {}, { path })).result)
    expect(await list('/mcp')).toEqual(expect.arrayContaining(['one_echo', 'two_echo', 'two_fail']))
    expect((await list('/mcp/t/small')).sort()).toEqual(['one_echo', 'one_fail', ...ownTools.toSorted()])
    expect((await list('/mcp/t/wide')).sort()).toEqual(['one_echo', ...ownTools.toSorted(), 'two_echo'])
    const own = await list('/mcp/s/two')
    expect(own).toContain('echo')
    expect(own).not.toContain('two_echo')

    const call = async (path: string, name: string, text: string) =>
      textOf((await ask(gateway, 'tools/call', { name, arguments: { text } }, { path })).result)
    expect(await call('/mcp', 'one_echo', 'a')).toBe('a')
    expect(await call('/mcp/t/small', 'one_echo', 'b')).toBe('b')
    expect(await call('/mcp/s/two', 'echo', 'c')).toBe('c')
    const texts = (calls: Awaited<ReturnType<typeof readRecord>>) => calls.map((entry) => entry.arguments?.text)
    expect(texts(await readRecord(one.file))).toEqual(['a', 'b'])
    expect(texts(await readRecord(two.file))).toEqual(['c'])
  })

  it('serve sessions as well', async () => {
    await using folder = await temporaryFolder()
    const { file, gateway } = await startWith(folder.path, (rec) => ({
      servers: { rec },
      toolsets: { small: { tools: ['rec_echo'] } },
    }))
    await using _ = gateway
    const toolset = await openSession(gateway, { path: '/mcp/t/small' })
    expect(namesIn((await toolset.request('tools/list')).result)).toEqual(['rec_echo', ...ownTools])
    const server = await openSession(gateway, { path: '/mcp/s/rec' })
    expect(textOf((await server.call('echo', { text: 'own name' })).result)).toBe('own name')
    expect(await readRecord(file)).toHaveLength(1)
  })

  it('record a call under its public name, whatever address it came through', async () => {
    await using folder = await temporaryFolder()
    const { gateway } = await startWith(folder.path, (rec) => ({ servers: { rec } }))
    await using _ = gateway
    await ask(gateway, 'tools/call', { name: 'echo', arguments: { text: 'x' } }, { path: '/mcp/s/rec' })
    const [call] = await poll(async () => {
      const calls = await recordedCalls(gateway)
      return calls[0]?.state === 'ok' ? calls : undefined
    })
    expect(call).toMatchObject({ tool: 'rec_echo', server: 'rec', surface: 'mcp', principal: 'agent:agent' })
  })

  it.each(['/mcp/t/nowhere', '/mcp/s/nowhere', '/mcp/t/constructor', '/mcp/s/toString'])(
    'say clearly that nothing is at %s',
    async (path) => {
      await using gateway = await startTestGateway({})
      const kind = path.startsWith('/mcp/t/') ? 'toolset' : 'server'
      const said = { code: `${kind}-not-found`, hint: expect.any(String) }
      const session = await openSession(gateway, { path })
      expect(session.initialized.status).toBe(404)
      expect(session.initialized.error).toMatchObject({ data: said, message: expect.stringContaining(`No ${kind}`) })
      for (const method of ['server/discover', 'tools/list', 'subscriptions/listen']) {
        const params = method === 'subscriptions/listen' ? { notifications: { toolsListChanged: true } } : {}
        const reply = await ask(gateway, method, params, { path })
        expect(reply.error, method).toMatchObject({ data: said })
      }
      await expect(gateway.connectV1('agent', path)).rejects.toThrow()
      await expect(gateway.connectV2('agent', { path })).rejects.toThrow()
    },
  )
})

describe('a tool that is hidden cannot be called by its name, and the attempt is recorded', () => {
  it('by a toolset', async () => {
    await using folder = await temporaryFolder()
    const { file, gateway } = await startWith(folder.path, (rec) => ({
      servers: { rec },
      toolsets: { small: { tools: ['rec_read_*'] } },
    }))
    await using _ = gateway
    const tries = ['rec_echo', 'echo', 'rec_delete_everything'].map((name) => ({ path: '/mcp/t/small', name }))
    await expectAllDenied(gateway, file, await tryEverywhere(gateway, tries))
  })

  it('by include and exclude', async () => {
    await using folder = await temporaryFolder()
    const { file, gateway } = await startWith(folder.path, (rec) => ({
      servers: { rec: { ...rec, tools: { include: ['*_thing'], exclude: ['destroy_*'] } } },
      toolsets: { all: { tools: ['*'] } },
    }))
    await using _ = gateway
    expect(namesIn((await ask(gateway, 'tools/list')).result).sort()).toEqual([
      ...['both', 'idempotent', 'plain', 'read', 'write'].map((name) => `rec_${name}_thing`),
      ...ownTools.toSorted(),
    ])
    const tries = ['echo', 'destroy_thing'].flatMap((name) => [
      { path: '/mcp', name: `rec_${name}` },
      { path: '/mcp', name },
      { path: '/mcp/t/all', name: `rec_${name}` },
      { path: '/mcp/s/rec', name },
      { path: '/mcp/s/rec', name: `rec_${name}` },
    ])
    await expectAllDenied(gateway, file, await tryEverywhere(gateway, tries))
  })

  it("by an agent's own scope, while others keep it", async () => {
    await using folder = await temporaryFolder()
    const { file, gateway } = await startWith(folder.path, (rec) => ({
      servers: { rec },
      toolsets: { all: {} },
      agents: { reviewer: { servers: { rec: { enabled: false } } } },
    }))
    await using _ = gateway
    expect(namesIn((await ask(gateway, 'tools/list', {}, { agent: 'reviewer' })).result)).toEqual([])
    const tries = [
      { path: '/mcp', name: 'rec_echo' },
      { path: '/mcp/t/all', name: 'rec_echo' },
      { path: '/mcp/s/rec', name: 'echo' },
    ]
    await expectAllDenied(gateway, file, await tryEverywhere(gateway, tries, 'reviewer'))
    const other = await ask(gateway, 'tools/call', { name: 'rec_echo', arguments: { text: 'mine' } })
    expect(textOf(other.result)).toBe('mine')
  })

  it('by a server that is disabled', async () => {
    await using folder = await temporaryFolder()
    const { file, gateway } = await startWith(folder.path, (rec) => ({
      servers: { rec: { ...rec, enabled: false } },
      toolsets: { all: {} },
    }))
    await using _ = gateway
    const tries = [
      { path: '/mcp', name: 'rec_echo' },
      { path: '/mcp/t/all', name: 'rec_echo' },
      { path: '/mcp/s/rec', name: 'echo' },
    ]
    await expectAllDenied(gateway, file, await tryEverywhere(gateway, tries))
  })

  it('by a name that a rename has taken away', async () => {
    await using folder = await temporaryFolder()
    const { file, gateway } = await startWith(folder.path, (rec) => ({
      servers: { rec: { ...rec, tools: { override: { echo: { name: 'say' } } } } },
    }))
    await using _ = gateway
    await expectAllDenied(gateway, file, await tryEverywhere(gateway, [{ path: '/mcp', name: 'rec_echo' }]))
  })

  it('from the moment at which the configuration hides it, in a session that saw it before', async () => {
    await using folder = await temporaryFolder()
    const { file, server } = recordingAt(folder.path)
    await using gateway = await startTestGateway({ servers: { rec: server } })
    const session = await openSession(gateway)
    expect(namesIn((await session.request('tools/list')).result)).toContain('rec_echo')
    await gateway.writeConfig({ servers: { rec: { ...server, tools: { exclude: ['echo'] } } } })
    await poll(async () => !namesIn((await session.request('tools/list')).result).includes('rec_echo') || undefined)
    expect((await session.call('rec_echo', { text: 'x' })).error).toMatchObject({ code: -32602 })
    expect(await readRecord(file)).toEqual([])
  })
})

describe('what the configuration makes of tools is what clients see', () => {
  it('names and descriptions by pattern', async () => {
    await using folder = await temporaryFolder()
    const { gateway } = await startWith(folder.path, (rec) => ({
      servers: { rec },
      naming: 'mcp_{server}_{tool}',
      describe: '[MCP: {server}] {description}',
    }))
    await using _ = gateway
    const tool = findTool((await ask(gateway, 'tools/list')).result, 'mcp_rec_echo')
    expect(tool.description).toBe('[MCP: rec] The tool echo of a fixture')
    const reply = await ask(gateway, 'tools/call', { name: 'mcp_rec_echo', arguments: { text: 'patterned' } })
    expect(textOf(reply.result)).toBe('patterned')
  })

  it('a tool renamed and re-described, reached under its new name and known to its server by its own', async () => {
    await using folder = await temporaryFolder()
    const { file, gateway } = await startWith(folder.path, (rec) => ({
      servers: { rec: { ...rec, tools: { override: { echo: { name: 'say', description: 'Says it back' } } } } },
    }))
    await using _ = gateway
    expect(findTool((await ask(gateway, 'tools/list')).result, 'rec_say').description).toBe('Says it back')
    expect(textOf((await ask(gateway, 'tools/call', { name: 'rec_say', arguments: { text: 'hi' } })).result)).toBe('hi')
    expect((await readRecord(file)).map(({ name }) => name)).toEqual(['echo'])
    const own = await ask(gateway, 'tools/list', {}, { path: '/mcp/s/rec' })
    expect(findTool(own.result, 'echo').description).toBe('Says it back')
  })

  it('a risk that the operator raised or lowered decides whether a call passes', async () => {
    await using folder = await temporaryFolder()
    const { file, server } = recordingAt(folder.path)
    const override = { read_thing: { risk: 'danger' as const }, destroy_thing: { risk: 'read' as const } }
    await using gateway = await startTestGateway({
      servers: { rec: { ...server, tools: { override } } },
      limits: { hold: 0 },
    })
    const raised = await ask(gateway, 'tools/call', { name: 'rec_read_thing', arguments: {} })
    expect(raised.result).toMatchObject({ isError: true })
    expect(textOf(raised.result)).toContain('approval-waiting')
    const lowered = await ask(gateway, 'tools/call', { name: 'rec_destroy_thing', arguments: {} })
    expect(lowered.result).not.toHaveProperty('isError')
    expect((await readRecord(file)).map(({ name }) => name)).toEqual(['destroy_thing'])
  })

  it("a tool's own schema, title and annotations, as the server wrote them", async () => {
    await using folder = await temporaryFolder()
    const { gateway } = await startWith(folder.path, (rec) => ({ servers: { rec } }))
    await using _ = gateway
    const { result } = await ask(gateway, 'tools/list')
    expect(findTool(result, 'rec_structured')).toMatchObject({
      outputSchema: { type: 'object', properties: { answer: { type: 'number' } }, required: ['answer'] },
      annotations: { readOnlyHint: true },
    })
    expect(findTool(result, 'rec_echo').inputSchema).toEqual({
      type: 'object',
      properties: { text: { type: 'string' }, delayMs: { type: 'number' } },
      required: ['text'],
    })
    expect(findTool(result, 'rec_plain_thing')).not.toHaveProperty('annotations')
  })
})

describe('a long list', () => {
  it('comes page by page, whole and without a tool twice, in both eras and with the official clients', async () => {
    await using folder = await temporaryFolder()
    const { server } = recordingAt(folder.path, 'many', ['--tools', '4500', '--page', '700'])
    await using gateway = await startTestGateway({ servers: { many: server } })
    const session = await openSession(gateway)
    const everything = await pages((params) => ask(gateway, 'tools/list', params))
    expect(everything.counts.length).toBeGreaterThan(1)
    expect(new Set(everything.names).size).toBe(everything.names.length)
    expect(everything.names.filter((name) => name.startsWith('many_tool_'))).toHaveLength(4500)
    expect(await pages((params) => session.request('tools/list', params))).toEqual(everything)

    const v2 = await gateway.connectV2('agent')
    expect(namesIn(await v2.listTools())).toEqual(everything.names)
    const v1 = await gateway.connectV1('agent')
    const first = await v1.listTools()
    const second = await v1.listTools({ cursor: first.nextCursor })
    expect([...namesIn(first), ...namesIn(second)]).toEqual(
      everything.names.slice(0, first.tools.length + second.tools.length),
    )
  })

  it('is the same each time it is asked for', async () => {
    await using folder = await temporaryFolder()
    const { server } = recordingAt(folder.path, 'many', ['--tools', '300'])
    await using gateway = await startTestGateway({ servers: { b: server, a: server } })
    const once = await ask(gateway, 'tools/list')
    expect((await ask(gateway, 'tools/list', {}, { agent: 'other' })).result).toEqual(once.result)
  })

  it('refuses a cursor of a list that has changed meanwhile, and one that never was', async () => {
    await using folder = await temporaryFolder()
    const { server } = recordingAt(folder.path, 'many', ['--tools', '2500'])
    await using gateway = await startTestGateway({ servers: { many: server } })
    const { nextCursor } = (await ask(gateway, 'tools/list')).result
    expect(nextCursor).toEqual(expect.any(String))
    expect(namesIn((await ask(gateway, 'tools/list', { cursor: nextCursor })).result)).not.toEqual([])
    await ask(gateway, 'tools/call', { name: 'many_change_list', arguments: { name: 'added' } })
    const outdated = await poll(async () => {
      const reply = await ask(gateway, 'tools/list', { cursor: nextCursor })
      return reply.message.error === undefined ? undefined : reply
    })
    expect(outdated.error).toMatchObject({
      code: -32602,
      message: expect.stringContaining('list again from the start'),
    })
    const hash = String(nextCursor).split('-')[0]
    for (const cursor of ['', 'nonsense', `${hash}-1`, `${hash}--1`, `${hash}-0.5`, `${hash}-99`, 7, {}, []]) {
      const reply = await ask(gateway, 'tools/list', { cursor })
      expect(reply.error, JSON.stringify(cursor)).toMatchObject({ code: -32602 })
    }
  })
})

async function pages(list: (params: Record<string, unknown>) => Promise<Reply>) {
  const names: string[] = []
  const counts: number[] = []
  let cursor: unknown
  do {
    const { result } = await list(cursor === undefined ? {} : { cursor })
    const page = namesIn(result)
    names.push(...page)
    counts.push(page.length)
    cursor = result.nextCursor
  } while (cursor !== undefined)
  return { names, counts }
}

function findTool(result: unknown, name: string) {
  const { tools } = toFields(result)
  const found = Array.isArray(tools) ? tools.map(toFields).find((tool) => tool.name === name) : undefined
  return toFields(found)
}

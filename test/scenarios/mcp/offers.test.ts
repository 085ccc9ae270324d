import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { fixturePath } from '../../fixtures/fixtures.ts'
import { startTestGateway, type TestGateway } from '../../support/gateway.ts'

const conformance = (era: string) => ({
  transport: 'stdio' as const,
  command: process.execPath,
  args: [fixturePath('conformance'), '--era', era],
})

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startTestGateway({
    servers: { old: conformance('legacy'), new: conformance('modern') },
    rules: [
      { action: 'allow' },
      { tools: 'new_test_simple_prompt', action: 'deny' },
      { tools: 'test://static-binary', action: 'deny' },
    ],
    toolsets: { only: { servers: ['old'], tools: ['old_test_simple_*'] } },
  })
})
afterAll(() => gateway.close())

const clients = [
  { name: 'SDK v1', connect: (path?: string) => gateway.connectV1('reader', path) },
  { name: 'SDK v2, stateless', connect: (path = '/mcp') => gateway.connectV2('reader', { path }) },
]

describe.each(clients)('through $name', ({ connect }) => {
  it('prompts of all servers are listed under names like those of tools, and got by them', async () => {
    const client = await connect()
    const { prompts } = await client.listPrompts()
    const names = prompts.map(({ name }) => name)
    expect(names).toEqual(expect.arrayContaining(['old_test_simple_prompt', 'new_test_simple_prompt']))
    const { messages } = await client.getPrompt({ name: 'old_test_simple_prompt' })
    expect(messages[0]).toMatchObject({ role: 'user', content: { type: 'text' } })
  })

  it('a prompt with arguments gets them as they were given', async () => {
    const client = await connect()
    const given = { arg1: 'first value', arg2: 'second value' }
    const { messages } = await client.getPrompt({ name: 'old_test_prompt_with_arguments', arguments: given })
    expect(JSON.stringify(messages)).toContain('first value')
    expect(JSON.stringify(messages)).toContain('second value')
  })

  it('addresses that two servers share are told apart and lead each to its own', async () => {
    const client = await connect()
    const { resources } = await client.listResources()
    const shared = resources.map(({ uri }) => uri).filter((uri) => uri.includes('static-text'))
    expect(shared).toEqual(['sallyport://new/test%3A%2F%2Fstatic-text', 'sallyport://old/test%3A%2F%2Fstatic-text'])
    for (const uri of shared) {
      const { contents } = await client.readResource({ uri })
      expect(contents[0]).toMatchObject({ mimeType: 'text/plain' })
    }
  })

  it('one server keeps its own names and addresses at its own place', async () => {
    const client = await connect('/mcp/s/old')
    expect((await client.listPrompts()).prompts.map(({ name }) => name)).toContain('test_simple_prompt')
    expect((await client.listResources()).resources.map(({ uri }) => uri)).toContain('test://static-text')
    const { resourceTemplates } = await client.listResourceTemplates()
    expect(resourceTemplates.map(({ uriTemplate }) => uriTemplate)).toContain('test://template/{id}/data')
    const { contents } = await client.readResource({ uri: 'test://template/123/data' })
    expect(JSON.stringify(contents)).toContain('123')
  })

  it('completion reaches the server that has the prompt', async () => {
    const client = await connect('/mcp/s/new')
    const ref = { type: 'ref/prompt' as const, name: 'test_prompt_with_arguments' }
    const { completion } = await client.complete({ ref, argument: { name: 'arg1', value: '' } })
    expect(Array.isArray(completion.values)).toBe(true)
  })

  it('a rule denies a prompt or a resource like a tool, and the attempt is recorded', async () => {
    const client = await connect()
    await expect(client.getPrompt({ name: 'new_test_simple_prompt' })).rejects.toThrow(/denied/)
    const { items } = await gateway.gateway.calls.list({ limit: 1, tool: 'new_test_simple_prompt' })
    expect(items[0]).toMatchObject({ method: 'prompts/get', risk: 'read', state: 'denied' })
  })

  it('a rule for a resource holds under every address by which it can be reached', async () => {
    const [all, one] = [await connect(), await connect('/mcp/s/old')]
    const attempts = [
      all.readResource({ uri: 'sallyport://old/test%3A%2F%2Fstatic-binary' }),
      one.readResource({ uri: 'test://static-binary' }),
      one.readResource({ uri: 'sallyport://old/test%3A%2F%2Fstatic-binary' }),
    ]
    for (const attempt of attempts) await expect(attempt).rejects.toThrow(/denied/)
  })

  it('what is not there is an error that says so', async () => {
    const client = await connect('/mcp/s/old')
    await expect(client.readResource({ uri: 'test://nowhere' })).rejects.toThrow(/No resource has the address/)
    await expect(client.getPrompt({ name: 'nobody' })).rejects.toThrow(/No prompt is named/)
  })

  it('a toolset shows only the prompts that its globs name, and no resource of another name', async () => {
    const client = await connect('/mcp/t/only')
    expect((await client.listPrompts()).prompts.map(({ name }) => name)).toEqual(['old_test_simple_prompt'])
    expect((await client.listResources()).resources).toEqual([])
    await expect(client.getPrompt({ name: 'old_test_prompt_with_arguments' })).rejects.toThrow(/No prompt is named/)
  })
})

it('a read and a get are calls of risk read with their own entries', async () => {
  const client = await gateway.connectV1('recorded', '/mcp/s/old')
  await client.readResource({ uri: 'test://static-text' })
  const { items } = await gateway.gateway.calls.list({ limit: 1, principal: 'agent:recorded' })
  expect(items[0]).toMatchObject({
    method: 'resources/read',
    tool: 'test://static-text',
    risk: 'read',
    state: 'ok',
  })
})

it('a server whose resources cannot be listed keeps its tools, and its lists are not called complete', async () => {
  const program = `
    const tools = [{ name: 'ok', inputSchema: { type: 'object' }, annotations: { readOnlyHint: true } }]
    const answers = {
      initialize: { protocolVersion: '2025-11-25', capabilities: { tools: {}, resources: {} }, serverInfo: { name: 'half', version: '1' } },
      'tools/list': { tools },
      'resources/templates/list': { resourceTemplates: 'none' },
    }
    require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
      const { id, method } = JSON.parse(line)
      if (id === undefined || method === 'resources/list') return
      const reply = answers[method] ? { result: answers[method] } : { error: { code: -32601, message: 'no' } }
      console.log(JSON.stringify({ jsonrpc: '2.0', id, ...reply }))
    })`
  await using half = await startTestGateway({
    servers: {
      half: { transport: 'stdio', command: process.execPath, args: ['-e', program], timeout: { connect: 1000 } },
    },
  })
  expect(await half.reach('half', 'connected')).toMatchObject({ tools: 1, complete: false })
})

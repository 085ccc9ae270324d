import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { CallToolResultSchema, CreateTaskResultSchema, ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { adminToken } from '../../../src/identity/identity.ts'
import { startConformanceServer } from '../../conformance/fixture.ts'
import { startTestGateway, type TestGateway } from '../../support/gateway.ts'

describe.each(['stdio', 'http'] as const)('a task of a server of the older era over %s', (transport) => {
  let server: Awaited<ReturnType<typeof startConformanceServer>>
  let test: TestGateway

  beforeAll(async () => {
    server = await startConformanceServer('legacy', transport)
    test = await startTestGateway({ servers: { fixture: server.definition }, rules: [{ action: 'allow' }] })
    await test.reach('fixture', 'connected')
  })
  afterAll(async () => {
    await test.close()
    await server[Symbol.asyncDispose]()
  })

  it('is started, asked for and fetched by who started it, at every address', async () => {
    const client = await connect(test, 'owner')
    expect(client.getServerCapabilities()?.tasks).toEqual({ cancel: {}, requests: { tools: { call: {} } } })
    const { taskId } = await begin(client, 'slow_compute', { seconds: 0, label: 'x' })
    await expect(client.experimental.tasks.getTask(taskId)).resolves.toMatchObject({ taskId })
    const elsewhere = await connect(test, 'owner', '/mcp')
    const result = await elsewhere.experimental.tasks.getTaskResult(taskId, CallToolResultSchema)
    expect(result.content).not.toEqual([])
    const methods = (await test.gateway.calls.list({ limit: 50 })).items.map(({ method }) => method)
    expect(methods).toEqual(expect.arrayContaining(['tools/call', 'tasks/get', 'tasks/result']))
  })

  it('does not exist for anybody else', async () => {
    const { taskId } = await begin(await connect(test, 'owner'), 'slow_compute', { seconds: 0, label: 'x' })
    const other = await connect(test, 'other')
    const { getTask, cancelTask } = other.experimental.tasks
    await expect(getTask.call(other.experimental.tasks, taskId)).rejects.toMatchObject({ code: -32602 })
    await expect(cancelTask.call(other.experimental.tasks, taskId)).rejects.toMatchObject({ code: -32602 })
  })

  it('does not exist for a new agent that has the name of a removed one', async () => {
    const { taskId } = await begin(await connect(test, 'removed'), 'slow_compute', { seconds: 0, label: 'x' })
    await test.gateway.removal.remove({ kind: 'user', name: 'admin-token', role: 'administrator' }, 'agent', 'removed')
    const { token } = await test.gateway.tokens.create(adminToken, { agent: 'removed' })
    const { tasks } = (await connectWith(test, token)).experimental
    await expect(tasks.getTask(taskId)).rejects.toMatchObject({ code: -32602 })
  })

  it('asks who waits for it, also while another call shares the link', async () => {
    const client = await connect(test, 'owner')
    const asked: unknown[] = []
    client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
      asked.push(params.message)
      return { action: 'accept', content: { confirm: true } }
    })
    const { taskId } = await begin(client, 'confirm_delete', { filename: 'a.txt' })
    const busy = client.callTool({ name: 'slow_compute', arguments: { seconds: 1 } })
    await client.experimental.tasks.getTaskResult(taskId, CallToolResultSchema)
    await busy
    expect(asked).toHaveLength(1)
  })

  it('is found again when every call has a link of its own', async () => {
    const client = await connect(test, 'owner')
    const tasks = await Promise.all([1, 2, 3].map(() => begin(client, 'slow_compute', { seconds: 0, label: 'x' })))
    const found = await Promise.all(tasks.map(({ taskId }) => client.experimental.tasks.getTask(taskId)))
    expect(found.map(({ taskId }) => taskId)).toEqual(tasks.map(({ taskId }) => taskId))
  })
})

it('a task is fetched by whom a rule let start it with these arguments', async () => {
  await using server = await startConformanceServer('legacy', 'stdio')
  await using test = await startTestGateway({
    servers: { fixture: server.definition },
    rules: [{ action: 'deny' }, { arguments: { '/label': 'fine' }, action: 'allow' }],
  })
  await test.reach('fixture', 'connected')
  const client = await connect(test, 'owner')
  const { taskId } = await begin(client, 'slow_compute', { seconds: 0, label: 'fine' })
  const result = await client.experimental.tasks.getTaskResult(taskId, CallToolResultSchema)
  expect(result.content).not.toEqual([])
})

it('a task that a stateless caller asks a server of the older era for is a plain call', async () => {
  await using server = await startConformanceServer('legacy', 'stdio')
  await using test = await startTestGateway({ servers: { fixture: server.definition }, rules: [{ action: 'allow' }] })
  const client = await test.connectV2('modern', { path: '/mcp/s/fixture' })
  const params = { name: 'greet', arguments: { name: 'Ada' }, task: { ttl: 60_000 } }
  const result = await client.request({ method: 'tools/call', params })
  expect(result).toMatchObject({ content: [{ type: 'text', text: 'Hello, Ada!' }] })
})

async function connect(test: TestGateway, agent: string, path?: string): Promise<Client> {
  return connectWith(test, await test.token(agent), path)
}

async function connectWith(test: TestGateway, token: string, path = '/mcp/s/fixture'): Promise<Client> {
  const client = new Client({ name: 'tester', version: '1.0.0' }, { capabilities: { elicitation: {} } })
  const headers = { authorization: `Bearer ${token}` }
  await client.connect(new StreamableHTTPClientTransport(new URL(path, test.url), { requestInit: { headers } }))
  return client
}

async function begin(client: Client, name: string, given: Record<string, unknown>) {
  const call = { method: 'tools/call', params: { name, arguments: given } } as const
  const { task } = await client.request(call, CreateTaskResultSchema, { task: { ttl: 60_000 } })
  return task
}

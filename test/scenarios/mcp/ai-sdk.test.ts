import { createMCPClient, type MCPClient } from '@ai-sdk/mcp'
import { beforeAll, describe, expect, it } from 'vitest'
import { readRecord } from '../../fixtures/fixtures.ts'
import { toFields } from '../../fixtures/lib/json-rpc.ts'
import { poll, type TestGateway } from '../../support/gateway.ts'
import { allowAll, namesIn, recordedCalls, startRecordingGateway, textOf } from './raw.ts'

let gateway: TestGateway
let record: string

beforeAll(async () => {
  const started = await startRecordingGateway({
    rules: [...allowAll, { tools: 'rec_destroy_thing', action: 'deny' }],
  })
  ;({ gateway, record } = started)
  return started.close
})

type Era = 'sessions' | 'stateless'

async function connect(era: Era, token?: string): Promise<MCPClient & AsyncDisposable> {
  const headers = { Authorization: `Bearer ${token ?? (await gateway.token('ai-sdk'))}` }
  const sessions: (string | undefined)[] = []
  const client = await createMCPClient({
    transport: { type: 'http', url: gateway.mcpUrl, headers, onSessionIdChange: (id) => sessions.push(id) },
    protocolVersionDiscovery: era === 'stateless',
  })
  expect(sessions.some(Boolean)).toBe(era === 'sessions')
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.close() })
}

/** A tool as the AI SDK runs it when a model asks for it. */
async function runTool(client: MCPClient, name: string, given: object): Promise<unknown> {
  const tool = (await client.tools())[name]
  if (!tool) throw new Error(`The client was not offered ${name}`)
  return tool.execute(given, { toolCallId: '1', messages: [], context: {} })
}

describe.each<Era>(['sessions', 'stateless'])("the AI SDK's own client with %s", (era) => {
  it('lists what the gateway offers', async () => {
    await using client = await connect(era)
    expect(client.serverInfo).toMatchObject({ name: 'sallyport' })
    expect(namesIn(await client.listTools())).toEqual(expect.arrayContaining(['rec_echo', 'rec_structured']))
  })

  it('calls a tool and gets its result', async () => {
    await using client = await connect(era)
    const text = `from the AI SDK, ${era}`
    expect(textOf(await runTool(client, 'rec_echo', { text }))).toBe(text)
    expect((await readRecord(record)).at(-1)).toMatchObject({ name: 'echo', arguments: { text } })
    const call = await poll(async () =>
      (await recordedCalls(gateway)).find((one) => toFields(one.arguments).text === text && one.endedAt),
    )
    expect(call).toMatchObject({ tool: 'rec_echo', state: 'ok', principal: 'agent:ai-sdk' })
  })

  it('gets structured content whole', async () => {
    await using client = await connect(era)
    expect(await runTool(client, 'rec_structured', {})).toMatchObject({ structuredContent: { answer: 42 } })
  })

  it('sees the text of a tool that failed', async () => {
    await using client = await connect(era)
    const result = await runTool(client, 'rec_fail', {})
    expect(result).toMatchObject({ isError: true })
    expect(textOf(result)).toBe('The tool failed on purpose')
  })

  it('sees the text of a denial', async () => {
    await using client = await connect(era)
    const result = await runTool(client, 'rec_destroy_thing', {})
    expect(result).toMatchObject({ isError: true })
    expect(textOf(result)).toMatch(/^call-denied: .*rule/)
    expect((await readRecord(record)).some(({ name }) => name === 'destroy_thing')).toBe(false)
  })

  it('is refused clearly without a token of this gateway', async () => {
    await expect(connect(era, 'made-up')).rejects.toThrow(/401|token/i)
  })
})

import { subscribe } from 'node:diagnostics_channel'
import {
  Agent,
  type AgentOutputItem,
  MCPServerStreamableHttp,
  type Model,
  type ModelRequest,
  Runner,
  setTracingDisabled,
  Usage,
} from '@openai/agents'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { readRecord } from '../../fixtures/fixtures.ts'
import { type Fields, toFields } from '../../fixtures/lib/json-rpc.ts'
import { acceptTools, poll, type TestGateway } from '../../support/gateway.ts'
import { allowAll, recordedCalls, startRecordingGateway } from './raw.ts'

// Nothing about these runs may leave the machine: every request of this process is noted, and the last test looks.
setTracingDisabled(true)
const askedOrigins = new Set<unknown>()
subscribe('undici:request:create', (message) => askedOrigins.add(toFields(toFields(message).request).origin))

// The SDK warns of every tool that takes any argument, which is most of the fixture's.
vi.spyOn(console, 'warn').mockImplementation(() => {})

let gateway: TestGateway
let record: string

beforeAll(async () => {
  const started = await startRecordingGateway({
    rules: [...allowAll, { tools: 'rec_destroy_thing', action: 'deny' }],
  })
  ;({ gateway, record } = started)
  return started.close
})

async function connect(token?: string): Promise<MCPServerStreamableHttp & AsyncDisposable> {
  const headers = { Authorization: `Bearer ${token ?? (await gateway.token('openai-agents'))}` }
  const server = new MCPServerStreamableHttp({ url: gateway.mcpUrl, requestInit: { headers } })
  await server.connect()
  return Object.assign(server, { [Symbol.asyncDispose]: () => server.close() })
}

type Step =
  | { readonly tool: string; readonly arguments?: Fields; readonly after?: () => Promise<unknown> }
  | { readonly text: string }

/** Takes its steps in order, each after what it waits for, and keeps what it was sent. */
function createScriptedModel(steps: readonly Step[]): Model & { readonly requests: ModelRequest[] } {
  const requests: ModelRequest[] = []
  return {
    requests,
    async getResponse(request) {
      const step = steps[requests.length] ?? { text: 'The script is over' }
      requests.push(request)
      if ('after' in step) await step.after?.()
      return { usage: new Usage(), output: [toItem(step, requests.length)] }
    },
    getStreamedResponse() {
      throw new Error('These runs are not streamed')
    },
  }
}

function toItem(step: Step, number: number): AgentOutputItem {
  if ('text' in step) {
    return {
      type: 'message',
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text: step.text }],
    }
  }
  const given = JSON.stringify(step.arguments ?? {})
  return { type: 'function_call', callId: `call-${number}`, name: step.tool, arguments: given, status: 'completed' }
}

/** A whole run of an agent with the gateway as its only server. */
async function runAgent(steps: readonly Step[]) {
  await using server = await connect()
  const model = createScriptedModel(steps)
  const agent = new Agent({
    name: 'scripted',
    model,
    mcpServers: [server],
    mcpConfig: { convertSchemasToStrict: false },
  })
  const result = await new Runner({ tracingDisabled: true }).run(agent, 'go')
  return { output: result.finalOutput, requests: model.requests }
}

/** What the model was told of the tools it has called, newest last. */
function resultsIn(request: ModelRequest | undefined): string[] {
  const items = Array.isArray(request?.input) ? request.input : []
  return items.filter((item) => item.type === 'function_call_result').map((item) => JSON.stringify(item.output))
}

describe("the OpenAI Agents SDK's own client", () => {
  it('lists what the gateway offers', async () => {
    await using server = await connect()
    const names = (await server.listTools()).map(({ name }) => name)
    expect(names).toEqual(expect.arrayContaining(['rec_echo', 'rec_structured']))
  })

  it('calls a tool and gets its result', async () => {
    await using server = await connect()
    const content = await server.callTool('rec_echo', { text: 'called directly' })
    expect(content).toMatchObject([{ type: 'text', text: 'called directly' }])
  })

  it('sees the text of a tool that failed', async () => {
    await using server = await connect()
    expect(await server.callToolResult('rec_fail', {})).toMatchObject({
      isError: true,
      content: [{ text: 'The tool failed on purpose' }],
    })
  })

  it('is refused clearly without a token of this gateway', async () => {
    await expect(connect('made-up')).rejects.toThrow(/401|token/i)
  })
})

describe('a whole run of an agent of the OpenAI Agents SDK', () => {
  it('hands the result of a tool to the model', async () => {
    const text = 'told to the model'
    const { output, requests } = await runAgent([{ tool: 'rec_echo', arguments: { text } }, { text: 'all done' }])
    expect(output).toBe('all done')
    expect(requests.map((request) => request.tools.some(({ name }) => name === 'rec_echo'))).toEqual([true, true])
    expect(resultsIn(requests[0])).toEqual([])
    expect(resultsIn(requests[1])).toEqual([expect.stringContaining(text)])
    expect((await readRecord(record)).at(-1)).toMatchObject({ name: 'echo', arguments: { text } })
    const call = await poll(async () =>
      (await recordedCalls(gateway)).find((one) => toFields(one.arguments).text === text && one.endedAt),
    )
    expect(call).toMatchObject({ tool: 'rec_echo', state: 'ok', principal: 'agent:openai-agents' })
  })

  it("hands a tool's failure and a denial of the gateway to the model as text, and goes on", async () => {
    const { output, requests } = await runAgent([
      { tool: 'rec_fail' },
      { tool: 'rec_destroy_thing' },
      { text: 'gave up' },
    ])
    expect(output).toBe('gave up')
    const [failure, denial] = resultsIn(requests[2])
    expect(failure).toContain('The tool failed on purpose')
    expect(denial).toContain('call-denied')
    expect((await readRecord(record)).some(({ name }) => name === 'destroy_thing')).toBe(false)
  })

  it('sees a tool that a server adds in the middle of it', async () => {
    const isOffered = async () => {
      await poll(() => gateway.gateway.servers.get(undefined, 'rec').tools.find(({ name }) => name === 'rec_midway'))
      await acceptTools(gateway, 'rec')
    }
    const { requests } = await runAgent([
      { tool: 'rec_change_list', arguments: { name: 'midway' } },
      { tool: 'rec_echo', arguments: { text: 'meanwhile' }, after: isOffered },
      { tool: 'rec_midway', arguments: { seen: true } },
      { text: 'found it' },
    ])
    expect(resultsIn(requests[3]).at(-1)).toContain('seen')
  })
})

it('speaks to the gateway and to nobody else', () => {
  expect([...askedOrigins]).toEqual([gateway.url])
})

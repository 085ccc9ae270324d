import { Client, StreamableHTTPClientTransport, type Tool } from '@modelcontextprotocol/client'
import { isFields } from '../fixtures/lib/json-rpc.ts'
import { startTestGateway } from '../support/gateway.ts'

/**
 * What the suite starts as the client under test: a gateway in front of the suite's server, used by an agent.
 * What the server sees is the gateway's own client; the agent only gives it something to do.
 */
const url = process.argv.at(-1) ?? ''
const context: unknown = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT || '{}')

/** Tools of the suite's servers that want something said. */
const usual: Record<string, (tools: readonly Tool[]) => Record<string, unknown>> = {
  add_numbers: () => ({ a: 5, b: 3 }),
  json_schema_echo: (tools) => ({ schema: tools.find(({ name }) => name.includes('2020_12'))?.inputSchema }),
}

await using test = await startTestGateway({
  servers: { suite: { transport: 'http', url } },
  rules: [{ action: 'allow' }],
})
await test.reach('suite', 'connected')
const client = new Client(
  { name: 'agent', version: '1.0.0' },
  {
    capabilities: { elicitation: { form: { applyDefaults: true }, url: {} }, sampling: {}, roots: {} },
    versionNegotiation: { mode: 'auto' },
  },
)
client.setRequestHandler('elicitation/create', async () => ({ action: 'accept', content: {} }))
await client.connect(
  new StreamableHTTPClientTransport(new URL('/mcp/s/suite', test.url), {
    requestInit: { headers: { authorization: `Bearer ${await test.token('agent')}` } },
  }),
)
const { tools } = await client.listTools()
for (const { name, arguments: given } of callsOf(tools)) {
  await client.callTool({ name, arguments: given }).catch((error: unknown) => console.error(name, String(error)))
}
await client.close()

/** What the scenario wants called, or every tool that there is. */
function callsOf(listed: readonly Tool[]): { name: string; arguments: Record<string, unknown> }[] {
  const wanted = isFields(context) && Array.isArray(context.toolCalls) ? context.toolCalls : undefined
  if (!wanted) return listed.map(({ name }) => ({ name, arguments: usual[name]?.(listed) ?? {} }))
  return wanted.filter(isFields).map((call) => ({
    name: String(call.name),
    arguments: isFields(call.arguments) ? call.arguments : {},
  }))
}

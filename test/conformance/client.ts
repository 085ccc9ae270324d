import { once } from 'node:events'
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { Client, StreamableHTTPClientTransport, type Tool } from '@modelcontextprotocol/client'
import { isFields, toFields } from '../fixtures/lib/json-rpc.ts'
import { startTestGateway } from '../support/gateway.ts'

/** Where the suite's program hands over the address of a server. */
export async function startClientUnderTest(): Promise<AsyncDisposable & { readonly url: string }> {
  const server = createServer(async (request, response) => {
    const { url, context } = toFields(JSON.parse(await text(request)))
    const failed = await useServer(String(url), String(context)).catch((error: unknown) => String(error))
    response.writeHead(failed === undefined ? 200 : 500).end(failed)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('The client under test has no port')
  return {
    url: `http://127.0.0.1:${address.port}/`,
    async [Symbol.asyncDispose]() {
      server.close()
      await once(server, 'close')
    },
  }
}

/**
 * A gateway in front of the suite's server, used by an agent. The server sees the client of the gateway; the agent only
 * makes it send requests.
 */
async function useServer(url: string, context: string): Promise<undefined> {
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
  for (const { name, arguments: given } of callsOf(JSON.parse(context || '{}'), tools)) {
    await client.callTool({ name, arguments: given }).catch(() => undefined) // the suite judges what reached its server
  }
  await client.close()
}

/** Arguments for tools of the suite's servers that require some. */
const usual: Record<string, (tools: readonly Tool[]) => Record<string, unknown>> = {
  add_numbers: () => ({ a: 5, b: 3 }),
  json_schema_echo: (tools) => ({ schema: tools.find(({ name }) => name.includes('2020_12'))?.inputSchema }),
}

/** The calls that the scenario names, or one call of every tool. */
function callsOf(context: unknown, listed: readonly Tool[]): { name: string; arguments: Record<string, unknown> }[] {
  const wanted = isFields(context) && Array.isArray(context.toolCalls) ? context.toolCalls : undefined
  if (!wanted) return listed.map(({ name }) => ({ name, arguments: usual[name]?.(listed) ?? {} }))
  return wanted.filter(isFields).map((call) => ({
    name: String(call.name),
    arguments: isFields(call.arguments) ? call.arguments : {},
  }))
}

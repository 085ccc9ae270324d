// A proxy with the official SDK in its usual form: one client for the server, one server object per session.
import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { NodeStreamableHTTPServerTransport } from '@modelcontextprotocol/node'
import { Server } from '@modelcontextprotocol/server'
import { serveProgram } from '../lib/serve-program.ts'

const [address = '', ...args] = process.argv.slice(2)
const client = new Client({ name: 'sdk-proxy', version: '1.0.0' })
await client.connect(
  address.startsWith('http')
    ? new StreamableHTTPClientTransport(new URL(address))
    : new StdioClientTransport({ command: address, args }),
)
const transports = new Map<string, NodeStreamableHTTPServerTransport>()

serveProgram((request, response) => {
  serve(request, response).catch(() => response.destroy())
})

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const id = request.headers['mcp-session-id']
  const known = typeof id === 'string' ? transports.get(id) : undefined
  await (known ?? (await openSession())).handleRequest(request, response)
}

async function openSession(): Promise<NodeStreamableHTTPServerTransport> {
  const transport = new NodeStreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    enableJsonResponse: true,
    onsessioninitialized: (id) => void transports.set(id, transport),
    onsessionclosed: (id) => void transports.delete(id),
  })
  const server = new Server({ name: 'sdk-proxy', version: '1.0.0' }, { capabilities: { tools: {} } })
  server.setRequestHandler('tools/list', ({ params }) => client.listTools(params))
  server.setRequestHandler('tools/call', ({ params }) => client.callTool(params))
  await server.connect(transport)
  return transport
}

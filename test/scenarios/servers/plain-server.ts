import { once } from 'node:events'
import { createServer } from 'node:http'
import { type Id, toIncoming } from '../../fixtures/lib/json-rpc.ts'

export type PlainRequest = {
  readonly id: Id
  readonly method: string
  readonly tool: string
  readonly session: string | undefined
}
export type PlainAnswer =
  | { readonly text: string }
  | { readonly status: number; readonly body?: unknown; readonly headers?: Record<string, string> }

/** A server with sessions that answers what `answer` leaves out; for single odd answers over HTTP. */
export async function startPlainServer(
  tools: readonly string[],
  answer: (request: PlainRequest) => PlainAnswer | undefined,
): Promise<AsyncDisposable & { readonly url: string }> {
  let sessions = 0
  const serverInfo = { name: 'plain', version: '1' }
  const usual = new Map<string, unknown>([
    ['initialize', { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo }],
    ['tools/list', { tools: tools.map((name) => ({ name, inputSchema: { type: 'object' } })) }],
    ['ping', {}],
  ])
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    const message = toIncoming(body)
    if (message?.kind === 'notification') return response.writeHead(202).end()
    if (message?.kind !== 'request') return response.writeHead(405).end()
    const { id, method, params } = message
    const session = request.headers['mcp-session-id']?.toString()
    const given = answer({ id, method, session, tool: String(params.name) })
    if (given && 'status' in given) {
      response.writeHead(given.status, { 'content-type': 'application/json', ...given.headers })
      return response.end(given.body === undefined ? '' : JSON.stringify(given.body))
    }
    const result = given ? { content: [{ type: 'text', text: given.text }] } : usual.get(method)
    if (result === undefined) return response.writeHead(400).end()
    if (method === 'initialize') sessions += 1
    response.writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': session ?? `session-${sessions}` })
    response.end(JSON.stringify({ jsonrpc: '2.0', id, result }))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('No port')
  return {
    url: `http://127.0.0.1:${address.port}/mcp`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
    },
  }
}

import { createServer, type ServerResponse } from 'node:http'
import { type Fields, parseJson, toFields } from '../../fixtures/lib/json-rpc.ts'

export type ScriptedCall = {
  readonly id: unknown
  readonly arguments: Fields
  readonly progressToken: unknown
  readonly response: ServerResponse
}

/** A server over HTTP with one tool, `talk`, whose every byte a test decides. */
export async function startScriptedServer(
  talk: (call: ScriptedCall) => void | Promise<void>,
): Promise<AsyncDisposable & { url: string }> {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const { id, method, params } = toFields(parseJson(Buffer.concat(chunks).toString('utf8')))
    const say = (status: number, body: Fields) =>
      response
        .writeHead(status, { 'content-type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id, ...body }))
    if (request.method !== 'POST') return response.writeHead(405).end()
    if (id === undefined) return response.writeHead(202).end()
    if (method === 'initialize') {
      const { protocolVersion } = toFields(params)
      const serverInfo = { name: 'scripted', version: '1.0.0' }
      return say(200, { result: { protocolVersion, capabilities: { tools: {} }, serverInfo } })
    }
    if (method === 'tools/list') {
      const tool = { name: 'talk', inputSchema: { type: 'object' }, annotations: { readOnlyHint: true } }
      return say(200, { result: { tools: [tool] } })
    }
    if (method !== 'tools/call') return say(400, { error: { code: -32601, message: 'Method not found' } })
    const { arguments: given, _meta } = toFields(params)
    await talk({ id, arguments: toFields(given), progressToken: toFields(_meta).progressToken, response })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : 0
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

import { createServer } from 'node:http'
import { type Fields, parseJson, toFields } from '../../fixtures/lib/json-rpc.ts'
import { metaKey, modernVersion } from './raw.ts'

/**
 * A server of the stateless era that keeps the parameters of every request, and makes a task of a call if it is told to.
 * `lists` are its answers to requests for lists, by method.
 */
export async function startStatelessRecorder(
  lists: Readonly<Record<string, Fields>> = {},
): Promise<AsyncDisposable & { readonly url: string; heard(method: string): Fields[] }> {
  const requests: { readonly method: unknown; readonly params: Fields }[] = []
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    if (request.method !== 'POST') return response.writeHead(405).end()
    const { id, method, params } = toFields(parseJson(Buffer.concat(chunks).toString('utf8')))
    requests.push({ method, params: toFields(params) })
    const listed = lists[String(method)]
    const result = listed ? complete(listed) : toResult(String(method), toFields(params))
    const body = result ? { result } : { error: { code: -32601, message: 'Method not found' } }
    response.writeHead(result ? 200 : 404, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ jsonrpc: '2.0', id, ...body }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : 0
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    heard: (wanted) => requests.filter(({ method }) => method === wanted).map(({ params }) => params),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

const tasks = metaKey('tasks')
const offered = { tools: {}, prompts: {}, resources: {}, completions: {}, extensions: { [tasks]: {} } }
const task = { taskId: 'task-1', status: 'working', createdAt: '2026-01-01T00:00:00Z', ttlMs: 60_000 }

function toResult(method: string, params: Fields): Fields | undefined {
  if (method === 'server/discover') return complete({ supportedVersions: [modernVersion], capabilities: offered })
  if (method === 'tools/list') return complete({ tools: [{ name: 'write', inputSchema: { type: 'object' } }] })
  if (method === 'prompts/list') return complete({ prompts: [{ name: 'summary' }] })
  if (method === 'resources/list') return complete({ resources: [{ uri: 'note://one', name: 'one' }] })
  if (method === 'resources/templates/list') return complete({ resourceTemplates: [] })
  if (method === 'tools/call') {
    return toFields(params.arguments).task === true ? { ...task, resultType: 'task' } : complete({ content: [] })
  }
  if (method === 'tasks/get' || method === 'tasks/update') return complete(task)
  if (method === 'prompts/get') return complete({ messages: [] })
  if (method === 'resources/read') return complete({ contents: [] })
  return method === 'completion/complete' ? complete({ completion: { values: [] } }) : undefined
}

function complete(result: Fields): Fields {
  return { resultType: 'complete', ttlMs: 0, cacheScope: 'private', ...result }
}

import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import { type Fields, isFields, parseJson } from '../../fixtures/lib/json-rpc.ts'

export type Received = {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly message: Fields
  /** The other side hung up before it had its answer. */
  hungUp: boolean
}

export type Script = (received: Received, response: ServerResponse) => void

export type ScriptedGateway = AsyncDisposable & {
  readonly url: string
  readonly received: readonly Received[]
  /** What came so far with this method of HTTP or of MCP. */
  of(method: string): Received[]
}

/** A gateway that does what a test says, and remembers all that reached it. */
export async function startScripted(script: Script): Promise<ScriptedGateway> {
  const received: Received[] = []
  const server = createServer((request, response) => {
    read(request).then((message) => {
      const one: Received = {
        method: request.method ?? '',
        path: request.url ?? '',
        headers: request.headers,
        message,
        hungUp: false,
      }
      response.on('close', () => {
        one.hungUp = !response.writableFinished
      })
      received.push(one)
      script(one, response)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  return {
    url: `http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}`,
    received,
    of: (method) => received.filter((one) => one.method === method || one.message.method === method),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

async function read(request: IncomingMessage): Promise<Fields> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(Buffer.from(chunk))
  const text = Buffer.concat(chunks).toString('utf8')
  const value = text === '' ? {} : parseJson(text)
  return isFields(value) ? value : {}
}

export function answer(response: ServerResponse, message: Fields, headers: Record<string, string> = {}): void {
  response
    .writeHead(200, { 'content-type': 'application/json', ...headers })
    .end(JSON.stringify({ jsonrpc: '2.0', ...message }, null, 2))
}

export function openEvents(response: ServerResponse): (message: Fields) => void {
  response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
  return (message) => void response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`)
}

/** Sessions as a gateway of the older era has them; a test takes them away with `forget`. */
export function createSessions() {
  const known = new Set<string>()
  let made = 0
  let stream: ((message: Fields) => void) | undefined
  return {
    forget: () => known.clear(),
    tell: (message: Fields) => stream?.(message),
    hasStream: () => stream !== undefined,
    /** Answers what belongs to sessions; the rest is the test's. */
    handle({ method, headers, message }: Received, response: ServerResponse): boolean {
      if (message.method === 'initialize') {
        const id = `session-${++made}`
        known.add(id)
        const capabilities = { tools: { listChanged: true } }
        const result = { protocolVersion: '2025-06-18', capabilities, serverInfo: { name: 'scripted', version: '1' } }
        answer(response, { id: message.id, result }, { 'mcp-session-id': id })
        return true
      }
      if (!known.has(String(headers['mcp-session-id']))) {
        response.writeHead(404).end()
        return true
      }
      if (method === 'DELETE') {
        response.writeHead(204).end()
        return true
      }
      if (method === 'GET') {
        stream = openEvents(response)
        return true
      }
      if ('id' in message && 'method' in message) return false
      response.writeHead(202).end()
      return true
    },
  }
}

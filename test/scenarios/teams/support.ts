import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { Listen } from '../../../src/contract/config.ts'
import type { Principal } from '../../../src/contract/principal.ts'
import { createApi } from '../../../src/http/api.ts'
import { createSignInCookie } from '../../../src/http/cookie.ts'
import { type Fields, parseJson, toFields } from '../../fixtures/lib/json-rpc.ts'
import { unboundedDelivery } from '../../support/delivery.ts'
import type { TestGateway } from '../../support/gateway.ts'

/** Who works at the shop. */
export const people = {
  root: { kind: 'user', name: 'root', role: 'administrator', person: true },
  tokenFile: { kind: 'user', name: 'admin-token', role: 'administrator' },
  anna: { kind: 'user', name: 'anna', role: 'member', person: true },
  ben: { kind: 'user', name: 'ben', role: 'member', person: true },
  olga: { kind: 'user', name: 'olga', role: 'member', person: true },
  otto: { kind: 'user', name: 'otto', role: 'auditor', person: true },
  agent: { kind: 'agent', name: 'helper', owner: 'anna' },
} as const satisfies Record<string, Principal>

export type Name = keyof typeof people

function isName(text: unknown): text is Name {
  return typeof text === 'string' && Object.hasOwn(people, text)
}

export type Answer = { readonly status: number; readonly body: Fields }
export type Rest = AsyncDisposable & {
  /** One request to REST by somebody; what is not GET sends a body. */
  ask(who: Name, method: string, path: string, body?: unknown): Promise<Answer>
}

/** REST as it is served, for people whose sign-in is not what the test is about. */
export async function serveRest({ gateway, url }: TestGateway): Promise<Rest> {
  const api = createApi({ gateway, url: () => url, cookie: createSignInCookie(Listen.parse({}), 'test') })
  const server = createServer((request, response) => {
    const who = request.headers['x-who']
    if (!isName(who)) return response.writeHead(500).end()
    api.handle(request, response, { principal: people[who], delivery: unboundedDelivery(response) })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const base = `http://127.0.0.1:${portOf(server.address())}/api`
  return {
    async ask(who, method, path, body) {
      const response = await fetch(`${base}${path}`, {
        method,
        headers: { 'x-who': who, 'content-type': 'application/json' },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
      return { status: response.status, body: toFields(await response.json()) }
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
    },
  }
}

export type Listener = AsyncDisposable & {
  readonly port: number
  readonly url: string
  /** Everything that reached it, headers included. */
  heard(): string
  requests(): number
  /** How many calls of tools have reached it. */
  calls(): number
  /** Refuses connections from now on, as a server that is down. */
  pause(): Promise<void>
  /** Takes connections again; `silent` takes calls and hangs up without an answer. */
  resume(how?: 'silent'): Promise<void>
}

const peek = { name: 'peek', inputSchema: { type: 'object' }, annotations: { readOnlyHint: true } }

/** An MCP server that keeps every word it is sent. Its tools may depend on the headers; by default one claims to read. */
export async function startListener(
  toolsFor: (headers: IncomingMessage['headers']) => Fields[] = () => [peek],
): Promise<Listener> {
  const heard: string[] = []
  const sockets = new Set<Socket>()
  let calls = 0
  let isSilent = false
  const server = createServer(async (request, response) => {
    const text = await readText(request)
    heard.push([request.method, request.url, ...request.rawHeaders, text].join('\n'))
    const { id, method, params } = toFields(parseJson(text || '{}'))
    const say = (result: Fields) =>
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id, result }))
    if (request.method !== 'POST') return response.writeHead(405).end()
    if (id === undefined) return response.writeHead(202).end()
    if (method === 'initialize') {
      const { protocolVersion } = toFields(params)
      return say({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'listener', version: '1' } })
    }
    if (method === 'tools/list') return say({ tools: toolsFor(request.headers) })
    if (method === 'tools/call') {
      calls++
      return isSilent ? response.destroy() : say({ content: [{ type: 'text', text: 'peeked' }] })
    }
    const error = { code: -32601, message: 'Method not found' }
    return response
      .writeHead(400, { 'content-type': 'application/json' })
      .end(JSON.stringify({ jsonrpc: '2.0', id, error }))
  })
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const port = portOf(server.address())
  return {
    port,
    url: `http://127.0.0.1:${port}/mcp`,
    heard: () => heard.join('\n\n'),
    requests: () => heard.length,
    calls: () => calls,
    async pause() {
      server.close()
      // Waits until the clients have closed their ends too. A client that has not noticed yet would still send a request.
      await Promise.all(Array.from(sockets, (socket) => once(socket.end(), 'close')))
    },
    async resume(how) {
      isSilent = how === 'silent'
      if (server.listening) return
      server.listen(port, '127.0.0.1')
      await once(server, 'listening')
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
    },
  }
}

async function readText(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of request) text += chunk
  return text
}

function portOf(address: ReturnType<ReturnType<typeof createServer>['address']>): number {
  if (address === null || typeof address === 'string') throw new Error('No port')
  return address.port
}

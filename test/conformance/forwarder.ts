import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'

export type Forwarder = AsyncDisposable & { readonly url: string }

/** The suite knows nothing of tokens: this adds one to every request, and puts the gateway's address where its own stood. */
export async function startForwarder(target: URL, token: string): Promise<Forwarder> {
  let own = ''
  const server = createServer((incoming, response) => {
    const { host, origin } = incoming.headers
    const headers = {
      ...incoming.headers,
      host: host === own ? target.host : host,
      ...(origin === `http://${own}` && { origin: target.origin }),
      authorization: `Bearer ${token}`,
    }
    forward(incoming, response, { target, headers })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('The forwarder has no port')
  own = `127.0.0.1:${address.port}`
  return {
    url: `http://${own}/mcp`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

function forward(
  incoming: IncomingMessage,
  response: ServerResponse,
  { target, headers }: { target: URL; headers: NodeJS.Dict<string | string[]> },
): void {
  const outgoing = request(target, { method: incoming.method ?? 'GET', headers }, (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.headers)
    response.flushHeaders()
    answer.pipe(response)
    answer.on('error', () => response.destroy())
  })
  outgoing.on('error', () => response.destroy())
  response.on('close', () => outgoing.destroy())
  incoming.pipe(outgoing)
}

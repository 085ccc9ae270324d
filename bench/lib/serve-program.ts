import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'

const neverMs = 3_600_000

/** Listens on a free port, prints the address in one line, and ends with its parent. */
export function serveProgram(handle: (request: IncomingMessage, response: ServerResponse) => void): void {
  // No idle timeout: a socket closed between two slices would look like a failure of the target.
  const server = createServer({ keepAliveTimeout: neverMs }, handle)
  server.listen(0, '127.0.0.1', () => {
    const address = server.address()
    if (address === null || typeof address === 'string') throw new Error('No port')
    process.stdout.write(`ready http://127.0.0.1:${address.port}\n`)
  })
  process.stdin.on('end', () => process.exit(0)).resume()
}

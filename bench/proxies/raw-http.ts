// The plain proxy for comparison: forwards bytes with node:http over sockets that stay open. It does not parse MCP.
import { Agent, request as send } from 'node:http'
import { serveProgram } from '../lib/serve-program.ts'

const server = new URL(process.argv[2] ?? '')
const agent = new Agent({ keepAlive: true })

serveProgram((request, response) => {
  const { method, headers } = request
  const options = { agent, host: server.hostname, port: server.port, path: server.pathname, method, headers }
  const forwarded = send(options, (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.headers)
    answer.pipe(response)
  })
  forwarded.on('error', () => response.destroy())
  request.pipe(forwarded)
})

// Like raw-http, but with undici towards the server: shows what a faster HTTP client saves.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Dispatcher, Pool } from 'undici'
import { serveProgram } from '../lib/serve-program.ts'

const server = new URL(process.argv[2] ?? '')
const pool = new Pool(server.origin, { connections: 256, pipelining: 1, headersTimeout: 0, bodyTimeout: 0 })

serveProgram((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => forward(request, response, Buffer.concat(chunks)))
})

function forward({ method = '', headers }: IncomingMessage, response: ServerResponse, body: Buffer): void {
  const { host: _, connection: __, 'content-length': ___, 'transfer-encoding': ____, ...passed } = headers
  const sent = body.length > 0 ? body : null
  pool.dispatch({ path: server.pathname, method, headers: passed, body: sent }, toHandler(response))
}

function toHandler(response: ServerResponse): Dispatcher.DispatchHandler {
  return {
    onRequestStart() {},
    onResponseStart(_controller, status, { connection: _, 'keep-alive': __, ...headers }) {
      response.writeHead(status, headers)
    },
    onResponseData(controller, chunk) {
      if (response.write(chunk)) return
      controller.pause()
      response.once('drain', () => controller.resume())
    },
    onResponseEnd() {
      response.end()
    },
    onResponseError() {
      response.destroy()
    },
  }
}

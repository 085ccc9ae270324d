// A fast MCP server over HTTP, so that the measurement shows the cost of the target in front of it.
// `/json` answers with JSON, `/sse` with an event stream; `/many` lists 1,000 tools; `/json/NUMBER` are further servers.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { serveProgram } from '../lib/serve-program.ts'
import { createAnswers, echoTools, manyTools, type Pieces } from './answers.ts'

const echo = createAnswers(echoTools)
const many = createAnswers(manyTools(1000))
let sessions = 0

serveProgram((request, response) => {
  if (request.method === 'POST') return post(request, response)
  const status = request.method === 'DELETE' ? 204 : 405 // no GET event stream: this server sends no notifications
  response.writeHead(status).end()
})

function post(request: IncomingMessage, response: ServerResponse): void {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => answer(request, response, Buffer.concat(chunks).toString()))
}

function answer({ url = '', headers }: IncomingMessage, response: ServerResponse, body: string): void {
  const pieces = (url.startsWith('/many') ? many : echo)(body)
  if (headers['mcp-session-id'] === undefined) response.setHeader('mcp-session-id', `echo-${++sessions}`)
  if (!pieces) return void response.writeHead(202, { 'content-length': 0 }).end()
  if (url.startsWith('/sse')) return sendEvent(response, pieces)
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0)
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': length })
  send(response, pieces)
}

const eventHead = Buffer.from('event: message\ndata: ')
const eventTail = Buffer.from('\n\n')

function sendEvent(response: ServerResponse, pieces: Pieces): void {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
  send(response, [eventHead, ...pieces, eventTail])
}

const joinBelow = 65_536

function send(response: ServerResponse, pieces: Pieces): void {
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0)
  if (length < joinBelow) return void response.end(Buffer.concat(pieces))
  for (const piece of pieces) response.write(piece)
  response.end()
}

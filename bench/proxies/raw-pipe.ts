// The plain proxy for stdio servers: HTTP requests become lines to one child process, and answers are matched by id.
// It requires unique ids of all callers and a server that writes the id first; a real gateway cannot require this.
import { spawn } from 'node:child_process'
import type { ServerResponse } from 'node:http'
import { createLines } from '../lib/lines.ts'
import { serveProgram } from '../lib/serve-program.ts'

const [command = '', ...args] = process.argv.slice(2)
const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] })
const waiting = new Map<string, ServerResponse>()
const newline = Buffer.from('\n')

const lines = createLines((line) => {
  const id = idOf(line)
  const response = waiting.get(id)
  waiting.delete(id)
  response?.writeHead(200, { 'content-type': 'application/json', 'content-length': line.length }).end(line)
})
child.stdout.on('data', lines.push)

serveProgram((request, response) => {
  if (request.method !== 'POST') return void response.writeHead(405).end()
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const body = Buffer.concat(chunks)
    const id = idOf(body)
    if (id === '') response.writeHead(202, { 'content-length': 0 }).end()
    else waiting.set(id, response)
    child.stdin.write(Buffer.concat([body, newline]))
  })
})

function idOf(message: Buffer): string {
  return /^\{"jsonrpc":"2.0","id":(\d+),/.exec(message.toString('latin1', 0, 48))?.[1] ?? ''
}

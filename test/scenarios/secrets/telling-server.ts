/**
 * A server that tells everything it was given, in every way there is: in results, errors, lists, progress, logs and on
 * standard error. Over HTTP with `--http`, where it also redirects from `/moved`; else over stdio.
 */
import { createServer } from 'node:http'
import { createInterface } from 'node:readline'

type Message = { id?: number; method?: string; params?: { name?: string; _meta?: { progressToken?: number } } }
type Push = (message: object) => void

/** What it got: a program by its environment and arguments, else by each request. */
const given = () => [
  ...Object.entries(process.env)
    .filter(([name]) => name.startsWith('TOLD_'))
    .map(([, v]) => v ?? ''),
  ...process.argv.slice(3),
]

function inEveryForm(values: readonly string[]): string {
  return values
    .flatMap((value) => [
      value,
      Buffer.from(`x${value}`).toString('base64'),
      Buffer.from(value).toString('hex'),
      encodeURIComponent(value),
      JSON.stringify({ value }),
    ])
    .join(' | ')
}

const names = [
  'tell',
  'tell_error',
  'tell_failure',
  'tell_structured',
  'tell_progress',
  'tell_log',
  'tell_much',
  'tell_asking',
]

function handle(message: Message, values: readonly string[], push: Push): void {
  const told = inEveryForm(values)
  const answer = (result: object) => push({ jsonrpc: '2.0', id: message.id, result })
  if (message.method === 'initialize') {
    const server = { name: `telling ${told}`, version: '1.0.0' }
    const capabilities = { tools: {}, logging: {} }
    return answer({ protocolVersion: '2025-06-18', capabilities, serverInfo: server, instructions: told })
  }
  if (message.method === 'tools/list') {
    const annotations = { readOnlyHint: true }
    return answer({
      tools: names.map((name) => ({ name, description: told, inputSchema: { type: 'object' }, annotations })),
    })
  }
  if (message.method === 'tools/call') return call(message, told, push)
  if (message.id !== undefined && message.method === 'ping') return answer({})
  if (message.id !== undefined && message.method) {
    push({ jsonrpc: '2.0', id: message.id, error: { code: -32601, message: `no ${message.method}: ${told}` } })
  }
}

function call({ id, params }: Message, told: string, push: Push): void {
  process.stderr.write(`called ${told}\n`)
  const answer = (result: object) => push({ jsonrpc: '2.0', id, result })
  const text = (said: string) => ({ content: [{ type: 'text', text: said }] })
  const notify = (method: string, more: object) => push({ jsonrpc: '2.0', method, params: more })
  if (params?.name === 'tell_error')
    return push({ jsonrpc: '2.0', id, error: { code: -32000, message: told, data: { told } } })
  if (params?.name === 'tell_failure') return answer({ ...text(told), isError: true })
  if (params?.name === 'tell_structured') return answer({ ...text(told), structuredContent: { [told]: [told] } })
  if (params?.name === 'tell_much') return answer(text(`${told} ${'x'.repeat(260_000)} ${told.repeat(4)}`))
  if (params?.name === 'tell_log') notify('notifications/message', { level: 'error', logger: told, data: { told } })
  const { progressToken } = params?._meta ?? {}
  if (progressToken !== undefined) notify('notifications/progress', { progressToken, progress: 1, message: told })
  setTimeout(() => answer(text(told)), 20)
}

if (process.argv[2] === '--http') serveHttp()
else serveStdio()

function serveStdio(): void {
  process.stderr.write(`started ${inEveryForm(given())}`)
  process.stderr.write(`\npart: ${given().join('').slice(0, 9)}`)
  setTimeout(() => process.stderr.write(`${given().join('').slice(9)}\n`), 30)
  const push: Push = (message) => process.stdout.write(`${JSON.stringify(message)}\n`)
  createInterface({ input: process.stdin })
    .on('line', (line) => handle(JSON.parse(line), given(), push))
    .on('close', () => process.exit(0))
}

function serveHttp(): void {
  const server = createServer((request, response) => {
    const values = [
      ...Object.entries(request.headers)
        .filter(([name]) => name.startsWith('x-told'))
        .map(([, value]) => String(value)),
      ...new URL(request.url ?? '/', 'http://x').searchParams.values(),
    ]
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      if (request.url?.startsWith('/moved')) {
        response.writeHead(302, { location: `http://127.0.0.1:9/?token=${values.join('&token=')}` }).end()
        return
      }
      if (request.url?.startsWith('/broken'))
        return void response.writeHead(500, values.join(' ')).end(values.join(' '))
      if (request.method !== 'POST') return void response.writeHead(405).end()
      const message: Message = JSON.parse(Buffer.concat(chunks).toString())
      if (message.id === undefined) return void response.writeHead(202).end()
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      handle(message, values, (sent) => {
        response.write(`data: ${JSON.stringify(sent)}\n\n`)
        if ('id' in sent) response.end()
      })
    })
  })
  server.listen(0, '127.0.0.1', () => {
    const address = server.address()
    process.stdout.write(`listening http://127.0.0.1:${typeof address === 'object' && address ? address.port : 0}\n`)
  })
  process.stdin.on('end', () => process.exit(0)).resume()
}

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type Fields, parseJson, toFields } from '../fixtures/lib/json-rpc.ts'
import { anthropicMessages } from './formats/anthropic-messages.ts'
import type { Chunk, OfferedTool, Reply, Turn } from './formats/format.ts'
import { gemini } from './formats/gemini.ts'
import { openaiChat } from './formats/openai-chat.ts'
import { openaiResponses } from './formats/openai-responses.ts'

const formats = [openaiChat, anthropicMessages, openaiResponses, gemini]

/** What the model says next: that it wants a tool, under the name that the gateway gave it, or its last words. */
export type Step = { readonly call: string; readonly arguments?: Fields } | { readonly say: string }

/** Decides by what the agent has sent; the agent waits meanwhile. */
export type Script = (turn: Turn) => Step | Promise<Step>

export type ScriptedModel = AsyncDisposable & {
  readonly url: string
  /** What the agent sent it, with tools; oldest first. */
  readonly turns: readonly Turn[]
  /** Requests that no script foresees: a place that the agent should not have asked. */
  readonly strangers: readonly string[]
}

/** A program that plays the model of any agent. */
export async function startScriptedModel(script: Script): Promise<ScriptedModel> {
  const turns: Turn[] = []
  const strangers: string[] = []
  let answers = 0

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname } = new URL(request.url ?? '/', 'http://model')
    const body = toFields(parseJson(await readBody(request)))
    const format = formats.find((candidate) => candidate.reads(pathname))
    if (request.method !== 'POST' || !format) {
      strangers.push(`${request.method} ${pathname}`)
      return send(response, 404, { error: { message: 'Not in the script', type: 'not_found_error' } })
    }
    const reply = await decide(format.read(body))
    answers += 1
    const { whole, stream } = format.write(reply, `id${answers}`)
    if (!format.streams(pathname, body)) return send(response, 200, whole)
    response.writeHead(200, { 'content-type': 'text/event-stream' }).end(stream.map(toEvent).join(''))
  }

  async function decide(turn: Turn): Promise<Reply> {
    // Agents also ask for a title or a summary: without tools, and beside the script.
    if (turn.tools.length === 0) return { kind: 'text', text: 'A title' }
    turns.push(turn)
    const step = await script(turn)
    if ('say' in step) return { kind: 'text', text: step.say }
    const tool = findTool(turn, step.call)
    if (!tool) return { kind: 'text', text: `I was not offered ${step.call}` }
    return { kind: 'call', tool, arguments: step.arguments ?? {} }
  }

  const server = createServer((request, response) => {
    handle(request, response).catch((error) => send(response, 500, { error: { message: String(error) } }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : 0
  return {
    url: `http://127.0.0.1:${port}`,
    turns,
    strangers,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** One step after the other, by the number of results: agents ask in no order that could be relied on. */
export function inOrder(...steps: readonly Step[]): Script {
  return ({ results }) => steps[results.length] ?? { say: 'The script is over' }
}

/** Each agent puts something of its own before our names. */
export function findTool({ tools }: Turn, name: string): OfferedTool | undefined {
  return tools.find((tool) => tool.name === name || tool.name.endsWith(`_${name}`))
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks).toString('utf8')
}

function send(response: ServerResponse, status: number, body: Fields): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

function toEvent({ event, data }: Chunk): string {
  const text = typeof data === 'string' ? data : JSON.stringify(data)
  return `${event === undefined ? '' : `event: ${event}\n`}data: ${text}\n\n`
}

import { spawn } from 'node:child_process'
import { Agent, createServer } from 'node:http'
import { expect, it } from 'vitest'
import { startHttpFixture, stdioFixture, stopChild } from '../../fixtures/fixtures.ts'
import { isFields, parseJson, toFields } from '../../fixtures/lib/json-rpc.ts'
import { readLines } from '../../fixtures/lib/stdio.ts'
import { startTestGateway } from '../../support/gateway.ts'
import { initialize, modernRequest, openSession, type Reply, send, textOf } from './raw.ts'

type Question = { id: number; server: 'pipe' | 'web'; text: string; delayMs: number | undefined }
type Client = (question: Question) => Promise<Reply>
type Tally = { asked: number; wrong: string[] }

/**
 * Every client numbers its calls 1, 2, 3 and keeps many of them in flight; every tenth takes its time.
 * Whoever gets an answer that was not for it, or under another id, is told of.
 */
async function crossCheck(clients: readonly Client[], callsEach: number, inFlight: number): Promise<Tally> {
  const tally: Tally = { asked: 0, wrong: [] }
  await Promise.all(
    clients.flatMap((client, index) => {
      let nextId = 1
      const worker = async () => {
        while (nextId <= callsEach) {
          const id = nextId++
          const text = `client ${index} call ${id} ${crypto.randomUUID()}`
          const delayMs = id % 10 === 0 ? ((id * 7 + index * 11) % 50) + 1 : undefined
          const reply = await client({ id, server: id % 2 === 0 ? 'pipe' : 'web', text, delayMs })
          tally.asked += 1
          if (reply.message.id === id && textOf(reply.result) === text) continue
          tally.wrong.push(`asked for ${text}, got ${reply.text.slice(0, 200)}`)
        }
      }
      return Array.from({ length: inFlight }, worker)
    }),
  )
  return tally
}

function toCall({ server, text, delayMs }: Question) {
  return { name: `${server}_echo`, arguments: { text, ...(delayMs !== undefined && { delayMs }) } }
}

it('gives each of four clients its own answers over 10,000 calls with equal ids, slow and fast ones mixed', async () => {
  await using web = await startHttpFixture('recording', ['--http'])
  await using gateway = await startTestGateway({
    servers: { pipe: stdioFixture('recording'), web: { transport: 'http', url: web.url } },
    limits: { callsPerMinute: 100_000, concurrent: 1000 },
  })
  const http = new Agent({ keepAlive: true, maxSockets: 64 })

  const withSession = async (agent: string): Promise<Client> => {
    const session = await openSession(gateway, { agent, http })
    return (question) => session.request('tools/call', toCall(question), question.id)
  }
  const stateless =
    (agent: string): Client =>
    async (question) => {
      const request = await modernRequest(gateway, 'tools/call', toCall(question), { agent, id: question.id })
      return send(gateway.mcpUrl, { ...request, agent: http })
    }
  const clients = [await withSession('one'), await withSession('two'), stateless('three'), stateless('one')]

  const { asked, wrong } = await crossCheck(clients, 2500, 16)
  http.destroy()
  expect(wrong).toEqual([])
  expect(asked).toBe(10_000)
})

it('would notice a gateway that passes the ids of its callers on to a shared connection', async () => {
  await using wrong = await startMixingGateway()
  const http = new Agent({ keepAlive: true, maxSockets: 64 })
  const client: Client = (question) => {
    const body = { jsonrpc: '2.0', id: question.id, method: 'tools/call', params: toCall(question) }
    return send(wrong.url, { body: JSON.stringify(body), agent: http })
  }
  const tally = await crossCheck([client, client], 200, 16)
  http.destroy()
  expect(tally.asked).toBe(400)
  expect(tally.wrong).not.toEqual([])
})

/** Does what must not be done: one connection for all, and the answer goes to whoever waits under its id. */
async function startMixingGateway() {
  const fixture = stdioFixture('recording')
  const child = spawn(fixture.command, fixture.args)
  const waiting = new Map<unknown, ((line: string) => void)[]>()
  readLines(child.stdout, (line) => waiting.get(toFields(parseJson(line)).id)?.shift()?.(line))
  child.stdin.write(`${JSON.stringify(initialize('start'))}\n`)

  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const message = parseJson(Buffer.concat(chunks).toString('utf8'))
    if (!isFields(message)) return void response.writeHead(400).end()
    const params = { ...toFields(message.params), name: 'echo' }
    const answer = (line: string) => response.writeHead(200, { 'content-type': 'application/json' }).end(line)
    waiting.set(message.id, [...(waiting.get(message.id) ?? []), answer])
    child.stdin.write(`${JSON.stringify({ ...message, params })}\n`)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : 0
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    async [Symbol.asyncDispose]() {
      await stopChild(child)
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

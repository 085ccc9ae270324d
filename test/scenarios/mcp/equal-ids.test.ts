import { spawn } from 'node:child_process'
import { Agent, createServer } from 'node:http'
import { expect, it } from 'vitest'
import { stdioFixture, stopChild } from '../../fixtures/fixtures.ts'
import { isFields, parseJson, toFields } from '../../fixtures/lib/json-rpc.ts'
import { readLines } from '../../fixtures/lib/stdio.ts'
import { askThroughGateway, type Client, crossCheck, toCall } from './equal-ids.ts'
import { initialize, send } from './raw.ts'

// 10,000 calls are in test/slow.
it('gives each of four clients its own answers over 400 calls with equal ids, slow and fast ones mixed', async () => {
  expect(await askThroughGateway(100)).toEqual({ asked: 400, wrong: [] })
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

import { Agent } from 'node:http'
import { startHttpFixture, stdioFixture } from '../../fixtures/fixtures.ts'
import { startTestGateway } from '../../support/gateway.ts'
import { modernRequest, openSession, type Reply, send, textOf } from './raw.ts'

type Question = { id: number; server: 'pipe' | 'web'; text: string; delayMs: number | undefined }
export type Client = (question: Question) => Promise<Reply>
export type Tally = { asked: number; wrong: string[] }

/**
 * Every client numbers its calls 1, 2, 3 and keeps many of them in flight; every tenth takes its time.
 * Whoever gets an answer that was not for it, or under another id, is told of.
 */
export async function crossCheck(clients: readonly Client[], callsEach: number, inFlight: number): Promise<Tally> {
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

export function toCall({ server, text, delayMs }: Question) {
  return { name: `${server}_echo`, arguments: { text, ...(delayMs !== undefined && { delayMs }) } }
}

/** Four clients of one gateway, two with sessions and two without, and a server over each transport. */
export async function askThroughGateway(callsEach: number): Promise<Tally> {
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

  try {
    return await crossCheck(clients, callsEach, 16)
  } finally {
    http.destroy()
  }
}

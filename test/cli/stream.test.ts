import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { describe, expect, it } from 'vitest'
import { type Heard, listen } from '../../src/cli/client/events.ts'
import { findFreePort } from './support.ts'

type Answer = (request: IncomingMessage, response: ServerResponse) => void

/** A gateway's side of the line: each request that comes gets the next answer. */
async function startLine(...answers: Answer[]) {
  const requests: IncomingMessage[] = []
  const server = createServer((request, response) => {
    requests.push(request)
    answers[requests.length - 1]?.(request, response)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : 0
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

function event(id: string, data: object): string {
  return `id: ${id}\nevent: approval-requested\ndata: ${JSON.stringify(data)}\n\n`
}

const stream: Answer = (_request, response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.write(': sallyport\n\n')
}

/** Listens until so many events came, or until it ends by itself. */
async function hear(url: string, most: number, patience = 10_000) {
  const leaving = new AbortController()
  const heard: Heard[] = []
  const told: string[] = []
  await listen({
    address: { url, token: 'sp_token' },
    names: ['approval-requested'],
    patience,
    signal: leaving.signal,
    onLinked: (afresh) => told.push(afresh ? 'linked afresh' : 'linked'),
    onLost: () => told.push('lost'),
    onEvent(each) {
      heard.push(each)
      if (heard.length === most) leaving.abort()
    },
  })
  return { heard, told }
}

describe('listening', () => {
  it('comes back to where it was when the line broke', async () => {
    await using line = await startLine(
      (request, response) => {
        stream(request, response)
        response.write(event('ins-1', { first: true }), () => response.destroy())
      },
      (request, response) => {
        stream(request, response)
        response.write(event('ins-2', { second: true }))
      },
    )
    const { heard, told } = await hear(line.url, 2)
    expect(heard.map(({ data }) => data)).toEqual([{ first: true }, { second: true }])
    expect(told.slice(0, 3)).toEqual(['linked afresh', 'lost', 'linked'])
    expect(line.requests.map(({ headers }) => headers['last-event-id'])).toEqual([undefined, 'ins-1'])
    expect(line.requests[0]?.headers.authorization).toBe('Bearer sp_token')
  })

  it('tries again while the gateway says that it is stopping', async () => {
    await using line = await startLine(
      (_request, response) => refuse(response, 503, 'shutting-down'),
      (request, response) => {
        stream(request, response)
        response.write(event('ins-1', {}))
      },
    )
    expect((await hear(line.url, 1)).told[0]).toBe('linked afresh')
  })

  it('ends at once where the sign-in no longer counts', async () => {
    await using line = await startLine((_request, response) => refuse(response, 401, 'sign-in-needed'))
    await expect(hear(line.url, 1)).rejects.toMatchObject({ code: 'sign-in-needed' })
    expect(line.requests).toHaveLength(1)
  })

  it('ends when nobody has answered for as long as it was told to look', async () => {
    const url = `http://127.0.0.1:${await findFreePort()}`
    await expect(hear(url, 1, 0)).rejects.toMatchObject({ code: 'unreachable' })
  })
})

function refuse(response: ServerResponse, status: number, code: string): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ error: { code, message: 'No', hint: 'Wait' } }))
}

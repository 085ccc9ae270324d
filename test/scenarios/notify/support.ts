import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Webhook } from 'standardwebhooks'
import { onTestFinished } from 'vitest'
import type { EventName } from '../../../src/contract/events.ts'
import type { NotifySettings } from '../../../src/notify/notify.ts'

export const whsec = `whsec_${Buffer.from('a secret of thirty two bytes....').toString('base64')}`

/** Impatient, so that a test need not wait for what an endpoint would. */
export const quickly: Partial<NotifySettings> = { pauses: [20, 40, 60], lookEvery: 100, attemptMs: 5000 }

export type Received = {
  readonly id: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
  /** Checked by the library of the standard, as a receiver would. */
  readonly message: { readonly type: string; readonly timestamp: string; readonly data: Record<string, unknown> }
}

export type Receiver = {
  readonly url: string
  readonly port: number
  readonly received: Received[]
  close(): Promise<void>
}

export type Answering = (received: Received, response: ServerResponse) => void | Promise<void>

/** A program that hears webhooks and checks their signatures; `answer` says 204 unless a test wants something else. */
export async function startReceiver(
  answer: Answering = (_, response) => void response.writeHead(204).end(),
  { secret = whsec, port = 0 } = {},
): Promise<Receiver> {
  const received: Received[] = []
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const body = Buffer.concat(chunks).toString('utf8')
    const { headers } = request
    const message = new Webhook(secret).verify(body, headers as Record<string, string>) as Received['message']
    const one = { id: String(headers['webhook-id']), headers, body, message }
    received.push(one)
    await answer(one, response)
  })
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  const taken = (server.address() as AddressInfo).port
  let closing: Promise<void> | undefined
  const close = () => {
    closing ??= new Promise((resolve) => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
    return closing
  }
  onTestFinished(close)
  return { url: `http://127.0.0.1:${taken}/hook`, port: taken, received, close }
}

export function hook(url: string, events: EventName[], more: { secret?: string; enabled?: boolean } = {}) {
  return { url, secret: whsec, events, ...more }
}

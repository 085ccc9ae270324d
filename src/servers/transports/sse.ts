import { GatewayError } from '../../contract/errors.ts'
import { onAbort } from '../../lib/signals.ts'
import { toLowerNames } from '../http/request.ts'
import type { ServerCarrier } from './carrier.ts'
import { openStream } from './event-stream.ts'
import { exchange } from './exchange.ts'
import { acceptBoth, createClient, type HttpParts } from './http.ts'

/** The oldest transport: one stream carries all messages. Its first event names the address for POST requests. */
export async function openSse(
  parts: HttpParts,
  { signal, timeoutMs }: { signal: AbortSignal; timeoutMs: number },
): Promise<ServerCarrier> {
  const url = new URL(parts.definition.url)
  const client = createClient(parts, url)
  const configured = toLowerNames(parts.definition.headers)
  const closing = new AbortController()
  const endpoint = Promise.withResolvers<string>()
  const close = async () => {
    closing.abort()
    await client.close()
  }
  const unlink = onAbort(signal, () => endpoint.reject(signal.reason))
  const cancelTimer = parts.clock.after(timeoutMs, () => {
    endpoint.reject(new GatewayError('call-timeout', `The server sent no endpoint event within ${timeoutMs} ms`))
  })

  openStream(
    client,
    `${url.pathname}${url.search}`,
    { ...configured, accept: 'text/event-stream' },
    {
      maxBytes: parts.maxMessageBytes,
      signal: closing.signal,
      onOpen() {},
      onEvent(event) {
        if (event.event === 'endpoint') return takeEndpoint(event.data.toString('utf8'), url, endpoint)
        if (event.event === 'message') parts.onMessage(event.data, undefined)
      },
      onEnd(refused, error) {
        const reason = refused ?? error ?? new GatewayError('server-broken', 'The server ended its event stream')
        endpoint.reject(reason)
        parts.onClose(reason)
      },
    },
  )

  const path = await endpoint.promise
    .catch(async (error: unknown) => {
      await close()
      throw error
    })
    .finally(() => {
      cancelTimer()
      unlink()
    })
  return {
    send(message) {
      const headers = { ...configured, ...message.headers, accept: acceptBoth, 'content-type': 'application/json' }
      return exchange(message, {
        client,
        request: { method: 'POST', path, headers, body: message.body },
        maxBytes: parts.maxMessageBytes,
        clock: parts.clock,
        closing: closing.signal,
        answers: 'elsewhere',
        lost: false,
        onHeaders() {},
        onMessage: (body) => parts.onMessage(body, message.id),
      })
    },
    listen: undefined,
    endSession: async () => {},
    close,
  }
}

/** The POST address must have the origin of the server: another origin would receive our headers. */
function takeEndpoint(text: string, base: URL, endpoint: PromiseWithResolvers<string>): void {
  const target = URL.canParse(text, base.href) ? new URL(text, base) : undefined
  if (target?.origin === base.origin) return endpoint.resolve(`${target.pathname}${target.search}`)
  endpoint.reject(
    new GatewayError('egress-denied', 'The endpoint event of the server names an address of another origin'),
  )
}

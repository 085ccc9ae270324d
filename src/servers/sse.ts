import type { Dispatcher } from 'undici'
import { GatewayError } from '../contract/errors.ts'
import type { ServerCarrier } from './carrier.ts'
import { acceptBoth, createPool, type HttpParts, openStream, toLinkError, toStatusError } from './http.ts'

/** The oldest way: one standing stream brings every message, requests are posted to the address it names first. */
export async function openSse(parts: HttpParts, signal: AbortSignal): Promise<ServerCarrier> {
  const url = new URL(parts.definition.url)
  const pool = createPool(parts, url.origin)
  const closing = new AbortController()
  const endpoint = Promise.withResolvers<string>()
  const close = async () => {
    closing.abort()
    await pool.destroy()
  }
  const onAbort = () => endpoint.reject(signal.reason)
  signal.addEventListener('abort', onAbort, { once: true })

  openStream(
    pool,
    `${url.pathname}${url.search}`,
    { ...parts.definition.headers, accept: 'text/event-stream' },
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

  const path = await endpoint.promise.catch(async (error: unknown) => {
    await close()
    throw error
  })
  signal.removeEventListener('abort', onAbort)
  return {
    send(message) {
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      const headers = { ...parts.definition.headers, ...message.headers, accept: acceptBoth }
      const handler = createPost({ sent: message.sent, resolve, reject, closing: closing.signal })
      pool.dispatch(
        { path, method: 'POST', headers: { ...headers, 'content-type': 'application/json' }, body: message.body },
        handler,
      )
      return promise
    },
    listen: undefined,
    endSession: async () => {},
    close,
  }
}

/** The server names where to post; only its own origin will do, or it could send our headers elsewhere. */
function takeEndpoint(text: string, base: URL, endpoint: PromiseWithResolvers<string>): void {
  const target = URL.canParse(text, base.href) ? new URL(text, base) : undefined
  if (target?.origin === base.origin) return endpoint.resolve(`${target.pathname}${target.search}`)
  endpoint.reject(new GatewayError('egress-denied', 'The server names an address of another origin to post to'))
}

type PostParts = { sent(): void; resolve(): void; reject(error: unknown): void; closing: AbortSignal }

function createPost(parts: PostParts): Dispatcher.DispatchHandler {
  let refused: GatewayError | undefined
  return {
    onRequestStart: () => parts.sent(),
    onResponseStart(_controller, status, headers) {
      if (status >= 300) refused = toStatusError(status, headers, false)
    },
    onResponseData() {},
    onResponseEnd: () => (refused ? parts.reject(refused) : parts.resolve()),
    onResponseError: (_controller, error) => parts.reject(toLinkError(error, parts.closing.aborted)),
  }
}

import { GatewayError, toGatewayError } from '../contract/errors.ts'
import type { Clock } from '../lib/clock.ts'
import type { EgressRules } from './egress.ts'
import { createHttpClient } from './http-client.ts'

export type Posting = {
  readonly url: string
  /** JSON. */
  readonly body: string
  readonly egress: EgressRules
  readonly clock: Clock
  readonly signal: AbortSignal
}

const connectTimeoutMs = 10_000

/** One message to an address outside, over the guarded client; throws unless it answers that it took it. */
export async function postJson({ url, body, egress, clock, signal }: Posting): Promise<void> {
  signal.throwIfAborted()
  const to = new URL(url)
  if (!/^https?:$/.test(to.protocol)) throw new GatewayError('request-invalid', `${to.protocol} cannot be posted to`)
  const client = createHttpClient({ url: to, egress, connectTimeoutMs, clock })
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  let status = 0
  const end = client.send(
    {
      method: 'POST',
      path: `${to.pathname}${to.search}`,
      headers: { 'content-type': 'application/json', 'user-agent': 'sallyport' },
      body: Buffer.from(body),
    },
    {
      onStart() {},
      onHead(answered) {
        status = answered
      },
      onData() {},
      onEnd: () => resolve(status),
      onError: (error) => reject(toGatewayError(error)),
    },
  )
  const onAbort = () => end(new GatewayError('unreachable', `${to.origin} did not answer in time`))
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    const answered = await promise
    if (answered < 200 || answered >= 300) throw new GatewayError('server-refused', `${to.origin} answered ${answered}`)
  } finally {
    signal.removeEventListener('abort', onAbort)
    await client.close()
  }
}

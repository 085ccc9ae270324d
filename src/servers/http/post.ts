import { GatewayError, toGatewayError } from '../../contract/errors.ts'
import type { Clock } from '../../lib/clock.ts'
import { onAbort } from '../../lib/signals.ts'
import { createHttpClient } from './client.ts'
import type { EgressRules } from './egress.ts'

export type Posting = {
  readonly url: string
  /** JSON text. */
  readonly body: string
  /** Headers in addition to the content type. */
  readonly headers?: Readonly<Record<string, string>>
  readonly egress: EgressRules
  readonly clock: Clock
  readonly signal: AbortSignal
}

const connectTimeoutMs = 10_000

/** Posts JSON to an address under the egress rules. Returns the status, and throws unless it is a success. */
export async function postJson({ url, body, headers, egress, clock, signal }: Posting): Promise<number> {
  signal.throwIfAborted()
  const to = new URL(url)
  if (!/^https?:$/.test(to.protocol))
    throw new GatewayError('request-invalid', `${to.protocol} is not supported: use an http or https address`)
  const client = createHttpClient({ url: to, egress, connectTimeoutMs, clock })
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  let status = 0
  const end = client.send(
    {
      method: 'POST',
      path: `${to.pathname}${to.search}`,
      headers: { ...headers, 'content-type': 'application/json', 'user-agent': 'sallyport' },
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
  const unlink = onAbort(signal, () => end(new GatewayError('unreachable', `${to.origin} did not answer in time`)))
  try {
    const answered = await promise
    if (answered >= 200 && answered < 300) return answered
    throw new GatewayError('server-refused', `${to.origin} answered ${answered}`, { status: answered })
  } finally {
    unlink()
    await client.close()
  }
}

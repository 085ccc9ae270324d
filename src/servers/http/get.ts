import { GatewayError, toGatewayError } from '../../contract/errors.ts'
import type { Clock } from '../../lib/clock.ts'
import { parseJson } from '../../lib/json.ts'
import { onAbort } from '../../lib/signals.ts'
import { createHttpClient } from './client.ts'
import type { EgressRules } from './egress.ts'

export type Getting = {
  readonly url: string
  readonly mostBytes: number
  readonly egress: EgressRules
  readonly clock: Clock
  readonly signal: AbortSignal
}

const connectTimeoutMs = 10_000

/** Gets a JSON document of limited size under the egress rules. Redirects are not followed. */
export async function getJson({ url, mostBytes, egress, clock, signal }: Getting): Promise<unknown> {
  signal.throwIfAborted()
  const to = new URL(url)
  if (!/^https?:$/.test(to.protocol))
    throw new GatewayError('request-invalid', `${to.protocol} is not supported: use an http or https address`)
  const client = createHttpClient({ url: to, egress, connectTimeoutMs, clock })
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const chunks: Buffer[] = []
  let bytes = 0
  const end = client.send(
    {
      method: 'GET',
      path: `${to.pathname}${to.search}`,
      headers: { accept: 'application/json', 'user-agent': 'sallyport' },
    },
    {
      onStart() {},
      onHead(status) {
        if (status !== 200) reject(new GatewayError('server-refused', `${to.origin} answered ${status}`, { status }))
      },
      onData(chunk) {
        bytes += chunk.length
        if (bytes > mostBytes)
          end(new GatewayError('server-broken', `The answer of ${to.origin} is larger than ${mostBytes} bytes`))
        else chunks.push(Buffer.from(chunk))
      },
      onEnd: () => resolve(Buffer.concat(chunks)),
      onError: (error) => reject(toGatewayError(error)),
    },
  )
  const unlink = onAbort(signal, () => end(new GatewayError('unreachable', `${to.origin} did not answer in time`)))
  try {
    return toJson(await promise, to.origin)
  } finally {
    unlink()
    await client.close()
  }
}

function toJson(body: Buffer, origin: string): unknown {
  try {
    return parseJson(body.toString('utf8'))
  } catch (error) {
    throw new GatewayError('server-broken', `The answer of ${origin} is not JSON`, {}, { cause: error })
  }
}

import type { IncomingMessage } from 'node:http'
import { ErrorBody } from '../../contract/api/base.ts'
import { type ErrorCode, GatewayError, isErrorCode } from '../../contract/errors.ts'

export type Sending = {
  readonly url: URL
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Buffer
  /** Milliseconds for the complete request and answer. */
  readonly deadline?: number
  /** Milliseconds without any received byte before the request fails. */
  readonly silence?: number
  readonly signal?: AbortSignal
}

/** An answer whose body is not read yet. */
export type Answer = {
  readonly status: number
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly incoming: IncomingMessage
  /** The complete body; undefined if it is longer than `mostBytes`. */
  read(mostBytes?: number): Promise<Buffer | undefined>
}

/**
 * Every HTTP request of the CLI, except those of `stdio`, which keeps its sockets open. Not `fetch`, because `fetch` fails
 * after five minutes without an answer, and a tool may take ten. Throws `unreachable`.
 */
export async function send(sending: Sending): Promise<Answer> {
  const { url, method = 'GET', headers, body, deadline, silence } = sending
  // Loaded only here, so that help and usage errors start fast.
  const { request } = url.protocol === 'https:' ? await import('node:https') : await import('node:http')
  const timeout = deadline === undefined ? undefined : AbortSignal.timeout(deadline)
  const signals = [timeout, sending.signal].filter((signal) => signal !== undefined)
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
  const outgoing = request(url, {
    method,
    headers: { ...headers, ...(body && { 'content-length': body.length }) },
    agent: false,
    signal: AbortSignal.any(signals),
  })
  let silent = false
  if (silence !== undefined) {
    outgoing.setTimeout(silence, () => {
      silent = true
      outgoing.destroy(new Error('silence'))
    })
  }
  outgoing.on('response', resolve)
  outgoing.on('error', reject)
  outgoing.end(body)
  const incoming = await promise.catch(fail)
  incoming.on('error', () => {}) // reading the body throws the error
  return {
    status: incoming.statusCode ?? 502,
    headers: Object.entries(incoming.headersDistinct).flatMap(([name, values = []]) =>
      values.map((value) => [name, value] as const),
    ),
    incoming,
    read: (mostBytes) => readBody(incoming, mostBytes).catch(fail),
  }

  function fail(error: unknown): never {
    throw new GatewayError('unreachable', toReason(error), {}, { cause: error })
  }

  function toReason(error: unknown): string {
    if (timeout?.aborted) return `${url.origin} did not answer within ${Math.round((deadline ?? 0) / 1000)} s`
    if (silent) return `${url.origin} sent nothing for ${Math.round((silence ?? 0) / 1000)} s`
    const reason = error instanceof Error && 'code' in error ? error.code : String(error)
    return `No gateway answers at ${url.origin} (${reason})`
  }
}

async function readBody(incoming: IncomingMessage, mostBytes = Number.POSITIVE_INFINITY): Promise<Buffer | undefined> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of incoming) {
    bytes += chunk.length
    if (bytes > mostBytes) return undefined // leaving the loop closes the socket
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

const mostOfRefusal = 65_536

/** The error in the body of a failed answer. */
export async function readRefusal(answer: Answer, url: string): Promise<GatewayError> {
  const body = await answer.read(mostOfRefusal)
  return toRefusal({ status: answer.status, body: body && toJson(body), url })
}

/** Maps an error answer of the gateway, or of a proxy in front of it, to an error of the table. */
export function toRefusal({ status, body, url }: { status: number; body: unknown; url: string }): GatewayError {
  const refusal = ErrorBody.safeParse(body).data?.error
  if (refusal === undefined) return new GatewayError(toCode(status), `${url} answered ${status}`)
  if (isErrorCode(refusal.code)) return new GatewayError(refusal.code, refusal.message, refusal.details)
  return new GatewayError(toCode(status), `${refusal.message} (${refusal.code}). ${refusal.hint}`)
}

/** For answers of a proxy, or of a newer gateway with an unknown error code. */
function toCode(status: number): ErrorCode {
  if (status === 401) return 'token-invalid'
  if (status === 403) return 'forbidden'
  if (status === 404) return 'not-found'
  return status >= 500 ? 'unreachable' : 'internal'
}

/** Undefined if the data is not JSON. */
export function toJson(data: Buffer): unknown {
  try {
    return JSON.parse(data.toString('utf8'))
  } catch {
    return undefined
  }
}

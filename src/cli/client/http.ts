import type { IncomingMessage } from 'node:http'
import { ErrorBody } from '../../contract/api/base.ts'
import { type ErrorCode, GatewayError, isErrorCode } from '../../contract/errors.ts'

export type Sending = {
  readonly url: URL
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Buffer
  /** Milliseconds until the answer has to be complete. */
  readonly deadline?: number
  /** Milliseconds for which the gateway may send nothing. */
  readonly silence?: number
  readonly signal?: AbortSignal
}

/** An answer whose body has not been read yet. */
export type Answer = {
  readonly status: number
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly incoming: IncomingMessage
  /** The whole body; undefined if it has more than `mostBytes`. */
  read(mostBytes?: number): Promise<Buffer | undefined>
}

/**
 * Every request of the CLI to the gateway, except those of `stdio`, which keeps its connections open. Not `fetch`:
 * that gives up after five minutes without an answer, and a tool may take ten. Throws `unreachable`.
 */
export async function send(sending: Sending): Promise<Answer> {
  const { url, method = 'GET', headers, body, deadline, silence } = sending
  // Loaded here, so that help and usage errors come without it.
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
  incoming.on('error', () => {}) // it is thrown where the body is read, which may begin later
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
    if (bytes > mostBytes) return undefined // leaving the loop closes the connection
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

const mostOfRefusal = 65_536

/** The error of an answer that is not what was asked for. */
export async function readRefusal(answer: Answer, url: string): Promise<GatewayError> {
  const body = await answer.read(mostOfRefusal)
  return toRefusal({ status: answer.status, body: body && toJson(body), url })
}

/** What the gateway, or a program in front of it, refused, in the words of the error table. */
export function toRefusal({ status, body, url }: { status: number; body: unknown; url: string }): GatewayError {
  const refusal = ErrorBody.safeParse(body).data?.error
  if (refusal === undefined) return new GatewayError(toCode(status), `${url} answered ${status}`)
  if (isErrorCode(refusal.code)) return new GatewayError(refusal.code, refusal.message, refusal.details)
  return new GatewayError(toCode(status), `${refusal.message} (${refusal.code}). ${refusal.hint}`)
}

/** For answers of a newer gateway, or of a proxy in front of it. */
function toCode(status: number): ErrorCode {
  if (status === 401) return 'token-invalid'
  if (status === 403) return 'forbidden'
  if (status === 404) return 'not-found'
  return status >= 500 ? 'unreachable' : 'internal'
}

/** Undefined for what is not JSON. */
export function toJson(data: Buffer): unknown {
  try {
    return JSON.parse(data.toString('utf8'))
  } catch {
    return undefined
  }
}

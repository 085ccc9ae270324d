import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { createORPCClient, ORPCError } from '@orpc/client'
import type { ContractRouterClient } from '@orpc/contract'
import { OpenAPILink } from '@orpc/openapi-client/fetch'
import { ErrorBody } from '../contract/api/base.ts'
import { api, door } from '../contract/api.ts'
import { type ErrorCode, GatewayError, isErrorCode } from '../contract/errors.ts'
import { type Address, toCredentials } from './address.ts'

export type Client = ContractRouterClient<typeof api>

/** The typed contract over HTTP. Every request ends by `deadline` milliseconds. */
export function createClient(address: Address, deadline: number): Client {
  const link = new OpenAPILink(api, {
    url: new URL('/api', address.url),
    headers: toCredentials(address),
    fetch: (request) => send(request, deadline),
    customErrorResponseBodyDecoder: toError,
  })
  return createORPCClient(link)
}

/** The cookie of a person who signs in; it lives in this process only. */
export async function signIn(
  url: string,
  person: { name: string; password: string },
  deadline: number,
): Promise<string> {
  let cookie: string | undefined
  const link = new OpenAPILink(door, {
    url: new URL('/api', url),
    async fetch(request) {
      const response = await send(request, deadline)
      cookie = response.headers.getSetCookie()[0]?.split(';', 1)[0]
      return response
    },
    customErrorResponseBodyDecoder: toError,
  })
  const client: ContractRouterClient<typeof door> = createORPCClient(link)
  await client.signIn(person)
  if (cookie !== undefined) return cookie
  throw new GatewayError('unreachable', `${url} did not answer like a gateway: it set no cookie`)
}

function toError(body: unknown, response: { status: number }): ORPCError<'GATEWAY', { status: number; body: unknown }> {
  return new ORPCError('GATEWAY', { status: response.status, data: { status: response.status, body } })
}

/** What a failed request means in the words of the error table. */
export function toClientError(error: unknown, url: string): GatewayError {
  if (error instanceof GatewayError) return error
  if (!(error instanceof ORPCError)) {
    const reason = error instanceof Error ? error.message : String(error)
    return new GatewayError('unreachable', `${url} did not answer like a gateway: ${reason}`, {}, { cause: error })
  }
  const answer = ErrorBody.safeParse(error.data?.body).data?.error
  if (answer === undefined) return new GatewayError(toCode(error.status), `${url} answered ${error.status}`)
  if (isErrorCode(answer.code)) return new GatewayError(answer.code, answer.message, answer.details)
  return new GatewayError(toCode(error.status), `${answer.message} (${answer.code}). ${answer.hint}`)
}

/** For answers of a newer gateway, or of something that stands in front of it. */
function toCode(status: number): ErrorCode {
  if (status === 401) return 'token-invalid'
  if (status === 403) return 'forbidden'
  if (status === 404) return 'not-found'
  return status >= 500 ? 'unreachable' : 'internal'
}

/** Not `fetch` itself: that gives up after five minutes without an answer, and a tool may take ten. */
async function send(request: Request, deadline: number): Promise<Response> {
  const url = new URL(request.url)
  const body = Buffer.from(await request.arrayBuffer())
  const timeout = AbortSignal.timeout(deadline)
  const { promise, resolve, reject } = Promise.withResolvers<Response>()
  const outgoing = (url.protocol === 'https:' ? requestHttps : requestHttp)(url, {
    method: request.method,
    headers: { ...Object.fromEntries(request.headers), 'content-length': body.length },
    agent: false,
    signal: timeout,
  })
  outgoing.on('response', (incoming) => {
    const chunks: Buffer[] = []
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk))
    incoming.on('error', fail)
    incoming.on('end', () => {
      const status = incoming.statusCode ?? 502
      const headers = Object.entries(incoming.headersDistinct).flatMap(([name, values = []]) =>
        values.map((value): [string, string] => [name, value]),
      )
      resolve(new Response(status === 204 ? null : Buffer.concat(chunks), { status, headers }))
    })
  })
  outgoing.on('error', fail)
  outgoing.end(body)
  return promise

  function fail(error: Error): void {
    const message = timeout.aborted
      ? `${url.origin} did not answer within ${Math.round(deadline / 1000)} s`
      : `No gateway answers at ${url.origin} (${'code' in error ? error.code : error.message})`
    reject(new GatewayError('unreachable', message, {}, { cause: error }))
  }
}

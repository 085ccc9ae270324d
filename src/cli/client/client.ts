import { createORPCClient, ORPCError } from '@orpc/client'
import type { ContractRouterClient } from '@orpc/contract'
import { OpenAPILink } from '@orpc/openapi-client/fetch'
import { api, door } from '../../contract/api.ts'
import { GatewayError } from '../../contract/errors.ts'
import { type Address, toCredentials } from './address.ts'
import { send, toRefusal } from './http.ts'

export type Client = ContractRouterClient<typeof api>

/** Typed API client. Every request fails after `deadline` milliseconds. */
export function createClient(address: Address, deadline: number): Client {
  const link = new OpenAPILink(api, {
    url: new URL('/api', address.url),
    headers: toCredentials(address),
    fetch: (request) => fetchBy(request, deadline),
    customErrorResponseBodyDecoder: toError,
  })
  return createORPCClient(link)
}

/** Signs in and returns the session cookie, which is never written to disk. */
export async function signIn(
  url: string,
  person: { name: string; password: string },
  deadline: number,
): Promise<string> {
  let cookie: string | undefined
  const link = new OpenAPILink(door, {
    url: new URL('/api', url),
    async fetch(request) {
      const response = await fetchBy(request, deadline)
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

/** Maps any failure of a request to an error of the table. */
export function toClientError(error: unknown, url: string): GatewayError {
  if (error instanceof GatewayError) return error
  if (error instanceof ORPCError) return toRefusal({ status: error.status, body: error.data?.body, url })
  const reason = error instanceof Error ? error.message : String(error)
  return new GatewayError('unreachable', `${url} did not answer like a gateway: ${reason}`, {}, { cause: error })
}

async function fetchBy(request: Request, deadline: number): Promise<Response> {
  const answer = await send({
    url: new URL(request.url),
    method: request.method,
    headers: Object.fromEntries(request.headers),
    body: Buffer.from(await request.arrayBuffer()),
    deadline,
  })
  const body = await answer.read()
  const { status } = answer
  const headers = answer.headers.map(([name, value]): [string, string] => [name, value])
  return new Response(status === 204 || body === undefined ? null : new Uint8Array(body), { status, headers })
}

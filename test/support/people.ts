import type { Role } from '../../src/contract/principal.ts'
import { type Reply, type Sending, send } from '../scenarios/mcp/raw.ts'
import type { TestGateway } from './gateway.ts'

export const password = 'correct horse battery'

export type TestPerson = {
  readonly name: string
  /** `NAME=VALUE`, as a browser sends it. */
  readonly cookie: string
  /** One request as a page of the gateway would send it. */
  request(method: string, path: string, body?: unknown): Promise<Reply>
}

/** The first administrator, signed in over REST. */
export async function firstAdministrator(gateway: TestGateway, name = 'ada'): Promise<TestPerson> {
  const { setup } = gateway.gateway.identity
  await setup.finish({ code: setup.code() ?? '', name, password })
  return signIn(gateway, name)
}

/** A user whom an administrator adds, signed in over REST. */
export async function addPerson(
  gateway: TestGateway,
  administrator: TestPerson,
  name: string,
  role: Role,
): Promise<TestPerson> {
  const added = await administrator.request('POST', '/api/users', { name, role, password })
  if (added.status !== 201) throw new Error(`${name} was not added: ${added.text}`)
  return signIn(gateway, name)
}

export async function signIn(gateway: TestGateway, name: string): Promise<TestPerson> {
  const reply = await sendJson(gateway, 'POST', '/api/sign-in', { name, password })
  const cookie = cookieOf(reply)
  if (cookie === undefined) throw new Error(`${name} was not signed in: ${reply.text}`)
  const headers = { cookie, origin: gateway.url }
  return { name, cookie, request: (method, path, body) => sendJson(gateway, method, path, body, headers) }
}

/** `NAME=VALUE` of the cookie that an answer sets. */
export function cookieOf(reply: Reply): string | undefined {
  return reply.headers['set-cookie']?.[0]?.split(';')[0]
}

/** One REST request by hand. */
export function sendJson(
  gateway: TestGateway,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Reply> {
  const sending: Sending = { method, path, headers: { ...headers } }
  if (body === undefined) return send(gateway.url, sending)
  const type = { 'content-type': 'application/json' }
  return send(gateway.url, { ...sending, headers: { ...type, ...headers }, body: JSON.stringify(body) })
}
